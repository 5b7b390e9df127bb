import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { METRICS_TABLE } from '../src/api/index.js';
import { ERROR_TABLE, SETTINGS_TABLE } from '../src/base/index.js';

const read = (name: string): string => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8');
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]!);

describe('documentation', () => {
  it('lists exactly the error codes of the code, with their texts', () => {
    const text = read('errors.md');
    expect(firstCells(text)).toEqual(Object.keys(ERROR_TABLE));
    for (const { when, action } of Object.values(ERROR_TABLE)) {
      expect(text).toContain(when.replaceAll('|', '\\|'));
      expect(text).toContain(action.replaceAll('|', '\\|'));
    }
  });

  it('lists exactly the settings of the code, with their meaning', () => {
    const text = read('settings.md');
    expect(firstCells(text)).toEqual(Object.keys(SETTINGS_TABLE));
    for (const { what } of Object.values(SETTINGS_TABLE)) expect(text).toContain(what.replaceAll('|', '\\|'));
  });

  it('lists exactly the metrics of the code, with type, labels and meaning', () => {
    const text = read('metrics.md');
    expect(firstCells(text)).toEqual(Object.keys(METRICS_TABLE));
    for (const { what, labels, type } of Object.values(METRICS_TABLE)) {
      const named = labels.map((label) => `\`${label}\``).join(', ');
      expect(text).toContain(`| ${type} | ${named} | ${what.replaceAll('|', '\\|')} |`);
    }
  });

  it('has a Grafana board whose every query names metrics and labels that there are', () => {
    const board = JSON.parse(read('grafana-board.json')) as {
      readonly panels: readonly {
        readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
      }[];
    };
    const targets = board.panels.flatMap(({ targets: own = [] }) => own);
    expect(targets.length).toBeGreaterThan(20);
    const metrics: Readonly<Record<string, { readonly labels: readonly string[]; readonly type: string }>> =
      METRICS_TABLE;
    for (const { expr, legendFormat } of targets) {
      const names = [...expr.matchAll(/\bisobar_\w+/g)].map(([name]) =>
        name.replace(/_(bucket|count|sum)$/, ''),
      );
      expect(names.length, expr).toBeGreaterThan(0);
      for (const name of names) expect(Object.keys(metrics), expr).toContain(name);
      const labels = names.flatMap((name) => metrics[name]!.labels);
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(labels, expr).toContain(label);
      for (const [, label] of expr.matchAll(/(\w+)(?:=~|!=|=)"/g)) expect(labels, expr).toContain(label);
    }
    for (const [name] of read('grafana-board.json').matchAll(/\bisobar_\w+/g))
      expect(Object.keys(metrics)).toContain(name.replace(/_(bucket|count|sum)$/, ''));
  });
});
