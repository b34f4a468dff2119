/** A user of the operating system, by number. */
export interface SystemUser {
  uid: number;
  /** The user's own group. */
  gid: number;
}
