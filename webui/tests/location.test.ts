import { expect, test } from "vitest";
import { partsOf } from "../src/app/location";

test("an address with a percent sign of its own is read as it stands", () => {
  expect(partsOf("/understand/caps%20one")).toEqual(["understand", "caps one"]);
  expect(partsOf("/understand/50%")).toEqual(["understand", "50%"]);
});
