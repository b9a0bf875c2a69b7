/** What a fabric looks like at an instant of a recording. */

import { released, type Released } from "./releases";
import type { Hop, Trace } from "./trace";

/** A packet on a link; share: how far it has come, 0 to 1. */
export interface Moving {
  packet: number;
  link: number;
  share: number;
}

/** A packet that a port has just dropped; age: 0 now, 1 out of sight. */
export interface Drop {
  packet: number;
  link: number;
  age: number;
}

/** What an agent has just handed to its host; age: 0 now, 1 out of sight. */
export interface Handed extends Released {
  age: number;
}

export interface Frame {
  moving: readonly Moving[];
  /** Packets that wait, by link, those that came first in front. */
  waiting: ReadonlyMap<number, readonly number[]>;
  drops: readonly Drop[];
  releases: readonly Handed[];
  /** Leaves that have a mode: whether it is ON. */
  modes: ReadonlyMap<number, boolean>;
  /** Packets dropped from the window's begin on. */
  dropped: number;
  /** Packets rebuilt from repairs from the window's begin on. */
  rebuilt: number;
}

const BUCKETS = 2000;

/** Finds the hops under way at an instant without looking at all of them. */
export class Replay {
  readonly trace: Trace;
  /** How long a drop and a release are shown, ps. */
  readonly dropPs: number;
  private readonly buckets: number[][];
  private readonly bucketPs: number;
  private readonly dropTimes: number[];
  private readonly released: readonly Released[];
  private readonly rebuiltTimes: number[];

  constructor(trace: Trace) {
    this.trace = trace;
    this.bucketPs = Math.max(1, trace.lengthPs / BUCKETS);
    this.dropPs = this.bucketPs * 10;
    this.buckets = Array.from({ length: BUCKETS + 1 }, () => []);
    trace.hops.forEach((hop, place) => {
      const last = this.bucket(this.endOf(hop));
      for (let bucket = this.bucket(hop.offered); bucket <= last; bucket += 1) {
        this.buckets[bucket]?.push(place);
      }
    });
    this.dropTimes = trace.hops.flatMap((hop) => (hop.dropped && hop.left !== null ? [hop.left] : []));
    this.dropTimes.sort((left, right) => left - right);
    this.released = released(trace);
    this.rebuiltTimes = this.released.flatMap(({ rebuilt, at }) => (rebuilt ? [at] : []));
  }

  /** Return the frame at *timePs*, ps from the window's begin. */
  frame(timePs: number): Frame {
    const moving: Moving[] = [];
    const waiting = new Map<number, number[]>();
    const drops: Drop[] = [];
    for (const place of this.buckets[this.bucket(timePs)] ?? []) {
      const hop = this.trace.hops[place];
      if (!hop || hop.offered > timePs) continue;
      if (waits(hop, timePs)) {
        const queue = waiting.get(hop.link);
        if (queue) queue.push(hop.packet);
        else waiting.set(hop.link, [hop.packet]);
      } else if (hop.dropped && hop.left !== null) {
        const age = (timePs - hop.left) / this.dropPs;
        if (age < 1) drops.push({ packet: hop.packet, link: hop.link, age });
      } else if (hop.left !== null && hop.arrived !== null && timePs < hop.arrived) {
        const share = (timePs - hop.left) / (hop.arrived - hop.left);
        moving.push({ packet: hop.packet, link: hop.link, share });
      }
    }
    return {
      moving,
      waiting,
      drops,
      releases: this.releases(timePs),
      modes: this.modes(timePs),
      dropped: upTo(this.dropTimes, timePs),
      rebuilt: upTo(this.rebuiltTimes, timePs),
    };
  }

  /** Return when the next packet comes to a port behind *timePs*; the window's end if none does. */
  next(timePs: number): number {
    const { hops, lengthPs } = this.trace;
    const place = firstBehind(hops.length, (index) => (hops[index]?.offered ?? lengthPs) > timePs);
    return hops[place]?.offered ?? lengthPs;
  }

  /** Return when the last packet before *timePs* came to a port; 0 if none did. */
  previous(timePs: number): number {
    const { hops } = this.trace;
    const place = firstBehind(hops.length, (index) => (hops[index]?.offered ?? 0) >= timePs);
    return hops[place - 1]?.offered ?? 0;
  }

  private releases(timePs: number): Handed[] {
    const begin = firstBehind(
      this.released.length,
      (index) => (this.released[index]?.at ?? 0) > timePs - this.dropPs,
    );
    const handed: Handed[] = [];
    for (let place = begin; place < this.released.length; place += 1) {
      const release = this.released[place];
      if (!release || release.at > timePs) break;
      handed.push({ ...release, age: (timePs - release.at) / this.dropPs });
    }
    return handed;
  }

  private modes(timePs: number): Map<number, boolean> {
    const modes = new Map<number, boolean>();
    for (const change of this.trace.modes) {
      if (change.at > timePs) break;
      modes.set(change.leaf, change.on);
    }
    return modes;
  }

  private bucket(timePs: number): number {
    return Math.min(BUCKETS, Math.max(0, Math.floor(timePs / this.bucketPs)));
  }

  private endOf(hop: Hop): number {
    if (hop.dropped && hop.left !== null) return hop.left + this.dropPs;
    return hop.arrived ?? this.trace.lengthPs;
  }
}

function waits(hop: Hop, timePs: number): boolean {
  if (hop.left === null) return hop.queue > 0;
  return timePs < hop.left;
}

function upTo(times: readonly number[], timePs: number): number {
  return firstBehind(times.length, (index) => (times[index] ?? 0) > timePs);
}

/** Return the least index from which on *behind* holds; *length* if it never does. */
function firstBehind(length: number, behind: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (behind(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
