import { useState } from "react";
import type { LinkLoadView } from "../api/schema";
import { useLive } from "../live/useLive";
import { bitRate, digits, percent } from "../parts/units";

const busiest = (link: LinkLoadView): number => Math.max(link.ab?.bits_per_s ?? 0, link.ba?.bits_per_s ?? 0);

/** The links as numbers, busiest first: what the map shows, in words. */
export function LinkTable({ choose }: { choose: (name: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>All links as a table</summary>
      {open && <Rows choose={choose} />}
    </details>
  );
}

function Rows({ choose }: { choose: (name: string) => void }) {
  const sample = useLive("links", (store) => store.links);
  const links = [...(sample?.links ?? [])].sort((left, right) => busiest(right) - busiest(left));
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Links">
      <table className="numbers">
        <thead>
          <tr>
            <th scope="col">link</th>
            <th scope="col">state</th>
            <th scope="col">carries</th>
            <th scope="col">up the tiers</th>
            <th scope="col">down the tiers</th>
            <th scope="col">waiting</th>
            <th scope="col">dropped</th>
          </tr>
        </thead>
        <tbody>
          {links.map((link) => (
            <tr key={link.name}>
              <th scope="row">
                <button className="plain" onClick={() => choose(link.name)}>
                  {link.name}
                </button>
              </th>
              <td>{link.up ? "up" : "✕ down"}</td>
              <td>{link.rate_kbps === null ? "–" : bitRate(link.rate_kbps * 1000)}</td>
              {[link.ab, link.ba].map((load, index) => (
                <td key={index}>
                  {load
                    ? `${bitRate(load.bits_per_s)}${load.share === null ? "" : ` (${percent(load.share)})`}`
                    : "–"}
                </td>
              ))}
              <td>{pair(link.ab?.queued_packets, link.ba?.queued_packets, "pkt")}</td>
              <td>{pair(link.ab?.dropped_per_s, link.ba?.dropped_per_s, "/s")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function pair(up: number | null | undefined, down: number | null | undefined, unit: string): string {
  if (up == null && down == null) return "–";
  return `${digits(up ?? 0)} / ${digits(down ?? 0)} ${unit}`;
}
