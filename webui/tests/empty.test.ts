import { createElement } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FlowsPage } from "../src/flows/FlowsPage";
import { PathsPage } from "../src/paths/PathsPage";
import { Queues } from "../src/queues/QueuesPage";
import { drawn } from "./drawn";

const refused = new Error("the controller does not answer");
const NO_QUEUES = "No port reports its queues";
const NO_FLOWS = "No flow has been seen";

beforeEach(() => vi.stubGlobal("window", { location: { pathname: "/", search: "" } }));
afterEach(() => vi.unstubAllGlobals());

test("ports are not said to report no queues before an answer says so", async () => {
  const page = createElement(Queues);
  expect(await drawn(page)).not.toContain(NO_QUEUES);
  const failed = await drawn(page, [[["queues", ""], refused]]);
  expect(failed).toContain(refused.message);
  expect(failed).not.toContain(NO_QUEUES);
  const none = { wanted: { number: 1, buffer_packets: null }, switches: [] };
  expect(await drawn(page, [[["queues", ""], none]])).toContain(NO_QUEUES);
});

test("flows are not said to be none where the list failed", async () => {
  const page = createElement(FlowsPage);
  const failed = await drawn(page, [[["flows", ""], refused]]);
  expect(failed).toContain(refused.message);
  expect(failed).not.toContain(NO_FLOWS);
  expect(await drawn(page, [[["flows", ""], { flows: [] }]])).toContain(NO_FLOWS);
});

test("traffic is suggested between hosts that every lab has, to a server that is started first", async () => {
  const fabric = { switches: [], links: [], hosts: [], scheme: "caps", settled: true };
  const html = await drawn(createElement(PathsPage), [[["fabric", ""], fabric]]);
  const server = html.indexOf("./capstan exec h3 -- iperf3 -s -D");
  expect(server).toBeGreaterThan(0);
  expect(html.indexOf("./capstan exec h1 -- iperf3 -c h3")).toBeGreaterThan(server);
});
