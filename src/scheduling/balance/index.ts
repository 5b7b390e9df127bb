export type { Balance, BalanceOptions } from './balance-groups.js';
export { balanceGroups } from './balance-groups.js';
export { largestLoadBound } from './lower-bound.js';
export type { BalanceProblem } from './balance-problem.js';
