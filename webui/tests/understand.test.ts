import { expect, test } from "vitest";
import type { ClassScheme, EvidenceClaim, Scheme } from "../src/api/schema";
import type { Experiment, ClaimVerdict } from "../src/experiments/types";
import { mechanisms, onlySimulated, parts } from "../src/understand/composition";
import { claimsOf, findingsOf, newestOf } from "../src/understand/evidence";
import { none, scheme as ecmp } from "./scheme";

const sprayed: ClassScheme = { ...none, group: "spray", entropy: "spray" };

test("flows that are hashed keep to a path each, sprayed ones use all", () => {
  expect(parts(ecmp).map((part) => Object.keys(part.counts).length)).toEqual([1, 1]);
  expect(parts({ ...ecmp, short: sprayed }).map((part) => part.counts)[0]).toEqual({
    1: 1,
    2: 1,
    3: 1,
    4: 1,
  });
});

test("a class that follows its leaf's mode has a diagram for each", () => {
  const long: ClassScheme = { ...sprayed, group: null, by_mode: { on: "hash", off: "spray" } };
  const drawn = parts({ ...ecmp, short: sprayed, long });
  expect(drawn.map((part) => [part.trafficClass, part.mode, Object.keys(part.counts).length])).toEqual([
    ["short", "", 4],
    ["long", "ON", 1],
    ["long", "OFF", 4],
  ]);
});

test("constant entropy keeps a flow on one path of a group that sprays", () => {
  const plb: ClassScheme = { ...sprayed, entropy: "plb" };
  expect(Object.keys(parts({ ...ecmp, long: plb })[1]!.counts)).toHaveLength(1);
});

test("only what a scheme has is named as its part", () => {
  expect(mechanisms(ecmp).map((mechanism) => mechanism.name)).toEqual(["Classes"]);
  const released: ClassScheme = { ...sprayed, release: { rule: "timer", packet_times: 4.25 } };
  const named = mechanisms({ ...ecmp, short: released, queues: { number: 8, buffer_packets: null } });
  expect(named.map((mechanism) => mechanism.name)).toEqual([
    "Classes",
    "In-order release of short flows",
    "Queues",
  ]);
  expect(named[1]?.words).toContain("4.25 packet times");
});

test("a scheme with hosts of its own is for simulations, and says how they send", () => {
  const dctcp: Scheme = { ...ecmp, dctcp: { mark_from_packets: 65 } };
  const pfabric: Scheme = {
    ...ecmp,
    pfabric: { initial_window: 12, largest_window: 15, timeout_packet_times: 37.5, buffer_bytes: 36_864 },
  };
  expect([ecmp, dctcp, pfabric].map(onlySimulated)).toEqual([false, true, true]);
  expect(mechanisms(dctcp)[1]?.words).toContain("from 65 waiting ones on");
  expect(mechanisms(pfabric)[1]?.words).toContain("37.5 packet times");
});

const claim = (text: string, scheme: string, against: string, preset = "a"): EvidenceClaim => ({
  text,
  scheme,
  against,
  preset,
  paper: "caps",
  source: "",
  figure: "",
  compared: "",
  row: null,
});
const finding: ClaimVerdict = { verdict: "seen", ratio: 0.5, interval: null, why: "" };

test("claims for a scheme come before those against it", () => {
  const claims = [claim("worse", "caps", "ecmp"), claim("better", "ecmp", "rps", "b")];
  expect(claimsOf(claims, "ecmp").map((one) => [one.text, one.preset])).toEqual([
    ["better", "b"],
    ["worse", "a"],
  ]);
  expect(claimsOf(claims, "tr")).toEqual([]);
});

test("a claim about a scheme at two points of a sweep is one claim", () => {
  expect(claimsOf([claim("later", "ecmp", "ecmp")], "ecmp")).toHaveLength(1);
});

test("findings come from experiments and from points of sweeps", () => {
  const wanted = claim("sooner", "caps", "ecmp");
  const about = { text: "sooner", compare: { measure: "short-mean", scheme: "caps", against: "ecmp" } };
  const kept = [
    {
      id: 1,
      summary: {
        claims: [
          { ...about, ours: finding },
          { ...about, text: "other", ours: finding },
        ],
      },
    },
    {
      id: 2,
      summary: {
        points: [{ experiment: 3 }, { experiment: 5 }],
        claims: [{ ...about, ours: [finding, finding] }],
      },
    },
    { id: 4, summary: null },
    {
      id: 6,
      summary: { points: [{ experiment: 7 }], claims: [{ ...about, ours: finding }] },
    },
    { id: 8, summary: { claims: [{ ...about, ours: null }] } },
  ].map((experiment) => ({ name: "a", ...experiment })) as unknown as Experiment[];
  expect(findingsOf(kept, "a", wanted).map((entry) => entry.experiment)).toEqual([1, 3, 5, 6]);
});

test("a finding is of the preset's own claim: presets share texts, and a text may be about two pairs", () => {
  const wanted = claim("sooner", "caps", "ecmp");
  const result = (id: number, name: string, scheme: string, against: string) => ({
    id,
    name,
    summary: { claims: [{ text: "sooner", compare: { measure: "", scheme, against }, ours: finding }] },
  });
  const kept = [
    result(1, "a", "caps", "ecmp"),
    result(2, "b", "caps", "ecmp"),
    result(3, "a", "caps", "rps"),
    result(4, "a", "htpc", "ecmp"),
  ] as unknown as Experiment[];
  expect(findingsOf(kept, "a", wanted).map((entry) => entry.experiment)).toEqual([1]);
});

test("only finished experiments of the claims' presets are looked through, the newest first", () => {
  const head = (id: number, name: string, state: "finished" | "failed" = "finished") => ({
    id,
    name,
    state,
    created_at: 1_000 + id,
  });
  const listed = [head(9, "b"), head(8, "a"), head(7, "a", "failed"), head(6, "other"), head(5, "a")];
  expect(newestOf(listed, [{ preset: "a" }, { preset: "c" }]).map(({ id }) => id)).toEqual([8, 5]);
  const many = Array.from({ length: 50 }, (_, index) => head(100 - index, "a"));
  expect(newestOf(many, [{ preset: "a" }]).map(({ id }) => id)).toEqual(
    many.slice(0, 20).map(({ id }) => id),
  );
});
