import type { ClassScheme, Scheme } from "../src/api/schema";

export const none: ClassScheme = {
  group: "hash",
  by_mode: null,
  entropy: "flow-hash",
  path: null,
  coding: null,
  release: null,
  priority: 0,
};
/** Flow hashing, and nothing else. */
export const scheme: Scheme = {
  name: "ecmp",
  title: "",
  summary: "",
  short: none,
  long: none,
  control: none,
  papers: [],
  mode: null,
  partition: null,
  queues: null,
  priority: null,
  admission: null,
  dctcp: null,
  pfabric: null,
  short_limit_bytes: 100_000,
  replication: null,
  prior_knowledge: true,
};
