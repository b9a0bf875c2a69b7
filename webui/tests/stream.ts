/** The stream as the page opens it; tests send what a controller would. */
export class Stream {
  static readonly CLOSED = 2;
  static newest: Stream;
  readyState = 1;
  readonly #listeners = new Map<string, (message: { data: string; lastEventId: string }) => void>();
  constructor(readonly url: string) {
    Stream.newest = this;
  }
  addEventListener(name: string, listener: (message: { data: string; lastEventId: string }) => void): void {
    this.#listeners.set(name, listener);
  }
  send(name: string, data: unknown, lastEventId = ""): void {
    this.#listeners.get(name)?.({ data: JSON.stringify(data), lastEventId });
  }
  greet(id: string, cursor: number, resumed = false): void {
    this.send("hello", { id, cursor, resumed, version: "", at: 0, topics: [] }, id);
  }
  closed = false;
  close(): void {
    this.closed = true;
  }
}
