/** Takes only the answer to the question that was asked last: of two files, the smaller is read sooner. */
export class LastAsked {
  #asked = 0;

  /** Call *take* or *fail* when *answer* has come, unless something else was asked for since. */
  ask<T>(answer: Promise<T>, take: (value: T) => void, fail: (error: unknown) => void): void {
    const number = ++this.#asked;
    const isLast = (): boolean => number === this.#asked;
    answer.then(
      (value) => isLast() && take(value),
      (error: unknown) => isLast() && fail(error),
    );
  }
}
