export type { Balance, BalanceOptions } from './balance-groups.js';
export { balanceGroups } from './balance-groups.js';
export type { BalanceProblem } from './balance-problem.js';
