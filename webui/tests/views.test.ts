import { expect, test } from "vitest";

import { movedTo } from "../src/app/moved";
import { addressOf, viewOf } from "../src/app/views";
import { replayAddress } from "../src/replay/address";

const SOURCES = import.meta.glob<string>("../src/**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});
/** `href="/watch"`, `` href={`/compare/${id}`} ``, `` navigate(`/compare/${id}`) ``, `` navigateFrom("/tour", `/compare/${id}`) ``: addresses that components write. */
const WRITTEN = /(?:href=\{?|navigate\(|navigateFrom\("[^"]*", )["`](\/(?!api\/)[^"`]*)["`]/g;

function writtenAddresses(): string[] {
  const texts = Object.values(SOURCES).flatMap((source) => [...source.matchAll(WRITTEN)]);
  // `/${view.path}` is made of VIEWS.
  const all = texts.map((match) => match[1] ?? "").filter((address) => !address.startsWith("/${"));
  return [...new Set(all.map((address) => address.replaceAll(/\$\{[^}]*\}/g, "1")))];
}

const partsOf = (address: string): string[] => (address.split("?")[0] ?? "").split("/").filter(Boolean);

test.each([
  ["/fabric", "?link=l1-s1", "/watch?link=l1-s1"],
  ["/experiments/5", "?with=3", "/compare/5?with=3"],
  ["/flows", "", "/operate/flows"],
  ["/replay", "?experiment=5", "/watch/replay?experiment=5"],
  ["/tpfs", "", "/understand/tpfs"],
])("%s%s leads to %s", (path, search, now) => expect(movedTo(path, search)).toBe(now));

test.each(["/", "/watch", "/watch/paths", "/compare/5", "/constructor"])("%s stays", (path) =>
  expect(movedTo(path, "")).toBeNull(),
);

test("components write addresses", () => expect(writtenAddresses()).toContain("/compare/1"));

test.each(writtenAddresses())("%s leads to a view", (address) =>
  expect(viewOf(partsOf(address))).not.toBeNull(),
);

test("a run is played in the section Replay", () => {
  const place = viewOf(partsOf(replayAddress(5, "caps", { from: 0, length: 1000 })));
  expect(place && addressOf(place.view, place.section)).toBe("/watch/replay");
});
