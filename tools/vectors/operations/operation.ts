/** What an operation of the vectors is: a case in, facts out. */
import { z } from 'zod';
import type { Comparison } from '../compare.js';
import type { VectorCase } from '../read-cases.js';

/** A fact is a value and how to compare it, or a check that says what is wrong (undefined: nothing). */
export type Fact =
  | { readonly value: unknown; readonly compare: Comparison }
  | { readonly check: (expected: unknown) => string | undefined };

export type Facts = Readonly<Record<string, Fact>>;
export type Operation = (test: VectorCase) => Facts;

/** Thrown by an operation for a case that the product has no answer to yet. */
export class NotSupported extends Error {}

export function exact(value: unknown): Fact {
  return { value, compare: 'exact' };
}

export function sets(value: unknown): Fact {
  return { value, compare: 'sets' };
}

export const rangeSchema = z.tuple([z.int(), z.int()]);
export const countsSchema = z.record(z.string(), z.int());
export const configurationSchema = z.record(z.string(), z.unknown()).default({});

export const workerSchema = z
  .object({ node: z.string(), port: z.int(), executors: z.array(rangeSchema) })
  .transform(({ node, port, executors }) => ({ supervisor: node, port, executors }));
