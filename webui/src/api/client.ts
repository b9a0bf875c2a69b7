/** Requests to the controller: JSON in, JSON out; what is refused becomes a `RefusedError` that says why. */

import type { components } from "./schema";
import type { Refusal } from "./types";

export const BASE = "/api/v1";

/** The controller answered, and said no. `status` 0: it did not answer at all. */
export class RefusedError extends Error {
  readonly status: number;
  readonly field: string | undefined;
  readonly problem: Refusal & Record<string, unknown>;

  constructor(problem: Refusal & Record<string, unknown>) {
    super(problem.detail || problem.title);
    this.name = "RefusedError";
    this.status = problem.status;
    this.field = problem.field;
    this.problem = problem;
  }
}

async function problemOf(response: Response): Promise<Refusal & Record<string, unknown>> {
  const plain: Refusal = {
    title: response.statusText || `status ${response.status}`,
    status: response.status,
    detail: "",
  };
  try {
    return { ...plain, ...((await response.json()) as Refusal) };
  } catch {
    return { ...plain, detail: `the controller answered with status ${response.status} and no explanation` };
  }
}

/** Return what to throw where no whole answer has come: an abort as it is, else *detail*. */
function unanswered(error: unknown, detail: string): Error {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  return new RefusedError({ title: "No answer", status: 0, detail });
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, { credentials: "same-origin", ...init });
  } catch (error) {
    throw unanswered(
      error,
      "the controller does not answer: has it ended? (./capstan lab or ./capstan serve starts it)",
    );
  }
  if (!response.ok) throw new RefusedError(await problemOf(response));
  return response;
}

async function bodyOf<T>(response: Response): Promise<T> {
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw unanswered(error, "the answer broke off, or is not the controller's: is something else between?");
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await send(path, {
    ...(signal ? { signal } : {}),
    headers: { Accept: "application/json" },
  });
  return bodyOf<T>(response);
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await send(path, signal ? { signal } : {})).text();
}

export async function getFile(path: string, signal?: AbortSignal): Promise<Blob> {
  return (await send(path, signal ? { signal } : {})).blob();
}

export async function change<T>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
): Promise<T> {
  const response = await send(path, {
    method,
    headers: { Accept: "application/json", "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return bodyOf<T>(response);
}

export type Session = components["schemas"]["SessionView"];

/** What no head of a request can have: a browser does not even send it. */
const UNSENDABLE = /[^\x20-\x7e\xa0-\xff]/;

/** Ask what this reader may do; with *token*, begin a session, whose cookie the stream of events needs. */
export async function openSession(token?: string): Promise<Session> {
  if (token && UNSENDABLE.test(token))
    throw new RefusedError({ title: "Unauthorized", status: 401, detail: "no token has such letters" });
  const headers: Record<string, string> = { Accept: "application/json", "Content-Type": "application/json" };
  if (token) headers["Authorization"] = `Bearer ${token}`;
  const response = await send("/session", { method: "POST", headers });
  return bodyOf<Session>(response);
}

/** End this browser's session, if it has not ended yet. */
export async function endSession(): Promise<void> {
  try {
    await change("DELETE", "/session");
  } catch (error) {
    if (!(error instanceof RefusedError) || error.status !== 401) throw error;
  }
}
