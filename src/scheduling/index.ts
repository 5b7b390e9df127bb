export type { Assignment, ComponentTasks, ExecutorRange, SlotAssignment } from './assignment.js';
