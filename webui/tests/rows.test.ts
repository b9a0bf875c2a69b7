import { expect, test } from "vitest";
import { choiceOf, chosenRows, merged, updates, withUpdates } from "../src/flows/rows";
import { withChanges } from "../src/app/location";
import { flow } from "./flow";

const flows = [
  flow(1, { source: "h1", destination: "h5", destination_port: 7000, bytes: 90_000 }),
  flow(2, { source: "h10", destination: "h5", traffic_class: "long", bytes: 5_000_000 }),
  flow(3, { source: "h2", destination: "h6", state: "ended" }),
  flow(4, { source: "h5", destination: "h1", bytes: 2080, packets: 40 }),
];
const ids = (search: string) => chosenRows(flows, choiceOf(new URLSearchParams(search))).map((one) => one.id);

test.each([
  ["", [3, 2, 1]],
  ["acks=1", [4, 3, 2, 1]],
  ["q=h1", [1]],
  ["q=h1>h5", [1]],
  ["q=>h5", [2, 1]],
  ["q=h5+7000", [1]],
  ["q=h5+nothing", []],
  ["class=long", [2]],
  ["state=ended", [3]],
  ["sort=-bytes", [2, 1, 3]],
  ["sort=bytes", [3, 1, 2]],
  ["sort=source", [1, 3, 2]],
  ["sort=__proto__", [3, 2, 1]],
])("%s shows the flows %j", (search, expected) => expect(ids(search)).toEqual(expected));

test("hosts are found whatever the case of their names, alone and in a pair", () => {
  const named = [flow(1, { source: "Web-1", destination: "DB" })];
  for (const text of ["web-1", "Web-1", "Web-1>DB", "web-1>db", ">DB"])
    expect(chosenRows(named, choiceOf(new URLSearchParams({ q: text }))).length).toBe(1);
  expect(chosenRows(named, choiceOf(new URLSearchParams({ q: "DB>Web-1" }))).length).toBe(0);
});

test("rows with updates are those of all flows together, in every order", () => {
  const state = { value: 7 };
  const random = (below: number): number => {
    state.value = (state.value * 48_271) % 2_147_483_647;
    return state.value % below;
  };
  const some = (id: number) =>
    flow(id, {
      bytes: 50_000 + 10 * random(20),
      source: `h${random(12)}`,
      bits_per_s: random(5),
      last_at: 5,
    });
  for (const sort of ["id", "-id", "-bytes", "source", "-source", "bits_per_s", "-lasted"]) {
    const choice = choiceOf(new URLSearchParams(`sort=${sort}&q=tcp`));
    const known = Array.from({ length: 200 }, (_, index) => some(200 - index));
    const live = [some(203), some(201), ...known.slice(50, 90).map((one) => some(one.id))];
    live.push(flow(7, { protocol: "udp", last_at: 6 }));
    const rows = withUpdates(
      chosenRows(known, choice),
      chosenRows(live, choice),
      new Set(live.map((one) => one.id)),
      choice,
    );
    expect(rows).toEqual(chosenRows(merged(known, live), choice));
  }
});

test("what the stream sends wins over what was known, unless it is older", () => {
  const known = [flow(2, { last_at: 5 }), flow(1, { last_at: 5 })];
  const live = [flow(3), flow(2, { last_at: 6, bytes: 1 }), flow(1, { last_at: 4, bytes: 1 })];
  const newer = updates(new Map(known.map((one) => [one.id, one])), live);
  expect(merged(known, newer).map((one) => [one.id, one.bytes])).toEqual([
    [3, 50_000],
    [2, 1],
    [1, 50_000],
  ]);
});

test("an address keeps what it is not asked to change", () => {
  expect(withChanges("?flow=3&sort=-bytes", { flow: null, q: "h1" })).toBe("?sort=-bytes&q=h1");
  expect(withChanges("?flow=3", { flow: "" })).toBe("");
});

test("values that an address has and no list, choose nothing", () => {
  const choice = choiceOf(new URLSearchParams("class=medium&state=done&sort=size"));
  expect([choice.trafficClass, choice.state, choice.sort]).toEqual(["", "", "id"]);
  expect(choiceOf(new URLSearchParams("class=long&state=ended"))).toMatchObject({
    trafficClass: "long",
    state: "ended",
  });
});
