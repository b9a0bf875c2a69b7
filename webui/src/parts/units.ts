/** Numbers for people, always with their unit. */

const SI = ["", "k", "M", "G", "T"] as const;

/** Return a rate with three digits: `2.13 Mbit/s`. */
export function bitRate(bitsPerS: number): string {
  return `${scaled(bitsPerS)}bit/s`;
}

/** Return a size in decimal units, as in the literature: `52.0 kB`. */
export function byteSize(bytes: number): string {
  return `${scaled(bytes)}B`;
}

function scaled(value: number): string {
  let step = 0;
  let mantissa = Math.abs(value);
  while (mantissa >= 999.5 && step < SI.length - 1) {
    mantissa /= 1000;
    step += 1;
  }
  return `${value < 0 ? "−" : ""}${digits(mantissa)} ${SI[step] ?? ""}`;
}

/** Return a number with three digits: `0`, `0.35`, `4.20`, `17.3`, `804`. */
export function digits(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** Return a duration: `840 µs`, `71.0 ms`, `4.20 s`, `2 min 5 s`. */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 0.000_5) return `${digits(seconds * 1e6)} µs`;
  if (size < 0.999_5) return `${digits(seconds * 1e3)} ms`;
  if (size < 59.95) return `${digits(seconds)} s`;
  const whole = Math.round(size);
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole % 60 === 0 ? "" : ` ${whole % 60} s`}`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Return a duration in whole seconds, for a running clock: `0 s`, `5 s`, `1 min 5 s`. */
export function wholeSeconds(seconds: number): string {
  const whole = Math.floor(seconds);
  return whole < 60 ? `${whole} s` : duration(whole);
}

/**
 * Return a ratio or a share with two decimals, and with more where it would look like 0 or 1 and is neither: verdicts
 * turn there.
 */
export function ratioText(value: number): string {
  for (const decimals of [2, 3, 4, 5]) {
    const text = value.toFixed(decimals);
    if (![0, 1].includes(Number(text)) || Number(text) === value) return text;
  }
  return value.toFixed(2);
}

/** Return a share as a percentage: `70 %`; `0.4 %` below ten, `0 %`. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** Return the time of day: `14:05:09`. */
export function clockTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

const two = (value: number): string => String(value).padStart(2, "0");

/** Return day and time: `2026-11-21 14:05`. */
export function dayTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Return when something happened: the time of day, with the day unless it is today. *now*: Unix seconds. */
export function timeOfEvent(seconds: number, now: number): string {
  const isToday = dayTime(seconds).slice(0, 10) === dayTime(now).slice(0, 10);
  return isToday ? clockTime(seconds) : dayTime(seconds);
}

/** Return a number with its noun: `1 link`, `3 links`. */
export function count(number: number, singular: string, many = `${singular}s`): string {
  return `${number.toLocaleString("en-US")} ${number === 1 ? singular : many}`;
}
