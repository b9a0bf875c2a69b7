/** Events in words; null for those that no person waits for. */

import type { EventHead } from "../api/types";

const text = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? `${value}` : "?";

const seconds = (value: unknown): string => (typeof value === "number" ? `${value.toFixed(1)} s` : "?");

function fault(event: EventHead): string {
  const fault = event["fault"] as { kind?: unknown; target?: unknown } | undefined;
  return `${text(fault?.kind)} of ${text(fault?.target)}`;
}

export function eventWords(event: EventHead): string | null {
  switch (event.kind) {
    case "switch-up":
      return `switch ${text(event["switch"])} connected`;
    case "switch-down":
      return `switch ${text(event["switch"])} was lost`;
    case "switch-forgotten":
      return `switch ${text(event["switch"])} is gone for good`;
    case "switch-turned-away":
      return `switch ${text(event["switch"])} was turned away: ${text(event["reason"])}`;
    case "link-up":
      return `link ${text(event["link"])} is up`;
    case "link-down":
      return `link ${text(event["link"])} is down (${text(event["cause"])})`;
    case "scheme-changed":
      return `scheme ${text(event["scheme"])} is in force`;
    case "agent-event":
      return `agent of ${text(event["host"])} ${event["joined"] ? "joined" : "left"}`;
    case "fault-began":
      return `fault: ${fault(event)}`;
    case "fault-ended":
      return `ended: ${fault(event)}`;
    case "part-restarted":
      return `${text(event["part"])} ended (${text(event["how"])}) and was started again after ${seconds(event["after_s"])}`;
    case "host-link-changed":
      return `the link of host ${text(event["ipv4"])} is ${event["up"] ? "up" : "down"}`;
    case "host-conflict":
      return `two hosts claim the address ${text(event["ipv4"])}`;
    case "switch-refused":
      return `switch ${text(event["switch"])} refused a message`;
    case "experiment-submitted":
      return `experiment ${text(event["experiment"])} (${text(event["name"])}) was submitted`;
    case "experiment-created":
      return `experiment ${text(event["experiment"])} (${text(event["name"])}) began`;
    case "experiment-ended":
      return `experiment ${text(event["experiment"])} (${text(event["name"])}) ${text(event["state"])}`;
    default:
      return null;
  }
}
