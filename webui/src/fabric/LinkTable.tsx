import { Anchor, Button } from "@mantine/core";
import { useState } from "react";
import type { LinkLoadView } from "../api/schema";
import { useLive } from "../live/useLive";
import { DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Panel";
import { bitRate, digits, percent } from "../parts/units";

const busiest = (link: LinkLoadView): number => Math.max(link.ab?.bits_per_s ?? 0, link.ba?.bits_per_s ?? 0);

/** Show the links as numbers, busiest first: the map's content in words. */
export function LinkTable({ choose }: { choose: (name: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <div>
      <Button variant="subtle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} All links as a table
      </Button>
      {open && (
        <Panel title="All links">
          <Rows choose={choose} />
        </Panel>
      )}
    </div>
  );
}

function Rows({ choose }: { choose: (name: string) => void }) {
  const sample = useLive("links", (store) => store.links);
  const links = [...(sample?.links ?? [])].sort((left, right) => busiest(right) - busiest(left));
  return (
    <DataTable
      label="Links"
      live
      maxHeight={420}
      head={["link", "state", "carries", "up the tiers", "down the tiers", "waiting", "dropped"]}
      rows={links.map((link) => ({
        key: link.name,
        cells: [
          <Anchor component="button" size="sm" onClick={() => choose(link.name)}>
            {link.name}
          </Anchor>,
          link.up ? "up" : "✕ down",
          link.rate_kbps === null ? "–" : bitRate(link.rate_kbps * 1000),
          ...[link.ab, link.ba].map((load) =>
            load
              ? `${bitRate(load.bits_per_s)}${load.share === null ? "" : ` (${percent(load.share)})`}`
              : "–",
          ),
          pair(link.ab?.queued_packets, link.ba?.queued_packets, "packets"),
          pair(link.ab?.dropped_per_s, link.ba?.dropped_per_s, "packets/s"),
        ],
      }))}
    />
  );
}

function pair(up: number | null | undefined, down: number | null | undefined, unit: string): string {
  if (up == null && down == null) return "–";
  return `${digits(up ?? 0)} / ${digits(down ?? 0)} ${unit}`;
}
