import { expect, test } from "vitest";

import { movedTo } from "../src/app/moved";

test.each([
  ["/fabric", "?link=l1-s1", "/watch?link=l1-s1"],
  ["/experiments/5", "?with=3", "/compare/5?with=3"],
  ["/flows", "", "/operate/flows"],
  ["/tpfs", "", "/understand/tpfs"],
])("%s%s leads to %s", (path, search, now) => expect(movedTo(path, search)).toBe(now));

test.each(["/", "/watch", "/watch/paths", "/compare/5", "/constructor"])("%s stays", (path) =>
  expect(movedTo(path, "")).toBeNull(),
);
