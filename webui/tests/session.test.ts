import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { endSession, get, openSession, RefusedError } from "../src/api/client";
import { leave, onSessionOver } from "../src/app/session";

/** Answer every request with *status*; 0: the controller does not answer. */
function answering(status: number): void {
  vi.stubGlobal("fetch", () =>
    status === 0
      ? Promise.reject(new TypeError("Failed to fetch"))
      : Promise.resolve(Response.json({ title: "", status, detail: "" }, { status })),
  );
}

const ask = (queries: QueryClient): Promise<void> =>
  queries.prefetchQuery({ queryKey: ["health"], queryFn: () => get("/health"), retry: false });
const send = async (queries: QueryClient): Promise<void> => {
  const mutation = queries.getMutationCache().build(queries, { mutationFn: () => get("/experiments") });
  await mutation.execute(undefined).catch(() => undefined);
};

afterEach(() => vi.unstubAllGlobals());

test.each([
  ["a question", ask],
  ["a change", send],
])("%s that is refused for its session asks for a token, until the page is left", async (_, request) => {
  const queries = new QueryClient();
  const over = vi.fn();
  const end = onSessionOver(queries, over);
  for (const status of [403, 500, 0, 200]) {
    answering(status);
    await request(queries);
  }
  expect(over).not.toHaveBeenCalled();
  answering(401);
  await request(queries);
  expect(over).toHaveBeenCalledOnce();
  end();
  await request(queries);
  expect(over).toHaveBeenCalledOnce();
});

test("a session that is over already can be ended, and what goes wrong else is said", async () => {
  answering(401);
  await expect(endSession()).resolves.toBeUndefined();
  answering(0);
  await expect(endSession()).rejects.toThrow(RefusedError);
  expect(await leave()).toContain("the controller does not answer");
  answering(200);
  expect(await leave()).toBe("");
});

test.each(["abc…", "“abc”", "ab\ncd"])("a token that no head can have is refused: %j", async (token) => {
  answering(200);
  await expect(openSession(token)).rejects.toMatchObject({ status: 401 });
  await expect(openSession("abc-ÿ")).resolves.toMatchObject({ status: 200 });
});

test.each([
  ["a network's own log-in page", "<html>"],
  ["an answer that broke off", '{"role": "oper'],
])("%s is no answer, and is asked for again", async (_, body) => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)));
  for (const asked of [openSession(), get("/health")])
    await expect(asked).rejects.toMatchObject({ name: "RefusedError", status: 0 });
});
