/** Values of the library that its types get wrong or leave out. */
import { ACL, CreateMode, Id, Permission } from 'node-zookeeper-client';

/** Who may use a node: whoever has the credentials of its creator, or everybody. */
export type Acl = 'creator' | 'everybody';

export const CREATE_PERSISTENT = CreateMode.PERSISTENT;
export const CREATE_EPHEMERAL = CreateMode.EPHEMERAL;

export function toLibraryAcl(acl: Acl): ACL[] {
  const id = acl === 'creator' ? new Id('auth', '') : new Id('world', 'anyone');
  return [new ACL(Permission.ALL, id)];
}
