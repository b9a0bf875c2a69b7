import { expect, test } from "vitest";
import { bitRate, byteSize, digits, duration, percent, ratioText, timeOfEvent } from "../src/parts/units";

test.each([
  [0, "0 bit/s"],
  [2_134_000, "2.13 Mbit/s"],
  [999_600, "1.00 Mbit/s"],
  [15e6, "15.0 Mbit/s"],
  [1e10, "10.0 Gbit/s"],
])("a rate of %d bit/s", (value, text) => expect(bitRate(value)).toBe(text));

test.each([
  [52_000, "52.0 kB"],
  [1_560, "1.56 kB"],
])("%d bytes, decimal", (value, text) => expect(byteSize(value)).toBe(text));

test.each([
  [0.000_04, "40.0 µs"],
  [0.071, "71.0 ms"],
  [0.9999, "1.00 s"],
  [4.2, "4.20 s"],
  [125, "2 min 5 s"],
  [120, "2 min"],
  [3720, "1 h 2 min"],
])("%d seconds", (value, text) => expect(duration(value)).toBe(text));

test("shares below ten per cent have a digit more", () => {
  expect([0, 0.004, 0.0996, 0.7, 1.02].map(percent)).toEqual(["0 %", "0.4 %", "10 %", "70 %", "102 %"]);
});

test("three digits, however large the number", () => {
  expect([0, 0.345, 9.996, 17.34, 804.4].map(digits)).toEqual(["0", "0.34", "10.0", "17.3", "804"]);
});

test("a ratio looks like 0 or 1 only where it is", () => {
  const values = [0, 1, 0.432, 0.0031, 0.998, 1.0004, 1e-9];
  expect(values.map(ratioText)).toEqual(["0.00", "1.00", "0.43", "0.003", "0.998", "1.0004", "0.00"]);
});

test("an event of another day has its day", () => {
  const at = (day: number, hours: number) => new Date(2026, 10, day, hours, 5, 9).getTime() / 1000;
  expect(timeOfEvent(at(21, 14), at(21, 23))).toBe("14:05:09");
  expect(timeOfEvent(at(20, 14), at(21, 1))).toBe("2026-11-20 14:05");
});
