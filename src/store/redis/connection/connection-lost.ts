/** A failure of the connection, as opposed to an error from the server. */
export class ConnectionLost extends Error {
  constructor(
    message: string,
    /** The command may have arrived. */
    readonly sent: boolean,
  ) {
    super(message);
  }
}
