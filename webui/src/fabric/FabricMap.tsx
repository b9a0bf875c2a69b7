import { Button } from "@mantine/core";
import { useMemo, useState } from "react";
import type { FabricView, FaultView, LinkLoadView, SwitchView } from "../api/schema";
import { useModes } from "../api/queries";
import { useLive, useStore } from "../live/useLive";
import { useScale } from "../app/Appearance";
import { useNow } from "../parts/useNow";
import { useWidth } from "../parts/useWidth";
import { duration } from "../parts/units";
import { hostName, layOut, type Line, linesOf, type Spot } from "./layout";
import { LinkLine, queueMark } from "./LinkLine";
import { useStops } from "./stops";
import { SwitchBox } from "./SwitchBox";
import { stepOf } from "./utilisation";
import styles from "./FabricMap.module.css";

interface Props {
  fabric: FabricView;
  link: string | null;
  host: string | null;
  chooseLink: (name: string) => void;
  chooseHost: (name: string) => void;
  /** Whether leaves have modes under the scheme in force. */
  modal: boolean;
  faults?: readonly FaultView[] | undefined;
}

/** Draw the fabric, by tiers, with what its links carry now. */
export function FabricMap({ fabric, link, host, chooseLink, chooseHost, modal, faults = [] }: Props) {
  const [frame, width] = useWidth<HTMLDivElement>(900);
  const scale = useScale();
  const layout = useMemo(() => layOut(fabric, width / scale), [fabric, width, scale]);
  const [whole, setWhole] = useState(false);
  const natural = Math.round(layout.width * scale);
  const lines = useMemo(() => linesOf(fabric, layout), [fabric, layout]);
  const chosen = link
    ? { kind: "link" as const, name: link }
    : host
      ? { kind: "host" as const, name: host }
      : undefined;
  const { stop, ...handlers } = useStops(lines, layout, chosen);
  const down = new Set(faults.filter((fault) => fault.kind === "switch-down").map((fault) => fault.target));
  return (
    <div ref={frame} className={styles["frame"]}>
      {natural > width && (
        <Button
          className={styles["fit"]}
          size="compact-sm"
          variant={whole ? "filled" : "default"}
          aria-pressed={whole}
          onClick={() => setWhole(!whole)}
        >
          Fit to window
        </Button>
      )}
      <svg
        className={styles["map"]}
        style={whole ? undefined : { minWidth: natural }}
        data-testid="fabric-map"
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        role="group"
        aria-label={`Fabric of ${fabric.switches.length} switches, ${fabric.links.length} links and ${fabric.hosts.length} hosts; arrow keys move between links and hosts`}
        {...handlers}
      >
        {layout.rows.map((row) => (
          <text key={row.name} x={6} y={row.y - 24} className={styles["rowName"]}>
            {row.name}
          </text>
        ))}
        <Links
          lines={lines}
          faults={faults}
          chosen={link}
          choose={chooseLink}
          stop={stop?.kind === "link" ? stop.name : undefined}
        />
        <Switches fabric={fabric} spots={layout.switches} modal={modal} down={down} />
        {fabric.hosts.map((hostView) => {
          const spot = layout.hosts.get(hostName(hostView));
          if (!spot) return null;
          const name = hostName(hostView);
          return (
            <g
              key={name}
              transform={`translate(${spot.x} ${spot.y})`}
              className={styles["host"]}
              role="button"
              tabIndex={stop?.kind === "host" && stop.name === name ? 0 : -1}
              aria-label={`Host ${name}${hostView.agent ? "" : ", without an agent"}`}
              aria-pressed={host === name}
              data-host={name}
              onClick={() => chooseHost(name)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                chooseHost(name);
              }}
            >
              <title>{`${name} (${hostView.underlay_ip})${hostView.agent ? "" : ": no agent"}`}</title>
              <circle r={19} className={hostView.agent ? undefined : styles["bare"]} />
              <text textAnchor="middle" dy="0.36em">
                {name.length > 5 ? name.slice(-4) : name}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

interface LinksProps {
  lines: readonly Line[];
  faults: readonly FaultView[];
  chosen: string | null;
  choose: (name: string) => void;
  /** The link that the Tab key stops at. */
  stop: string | undefined;
}

function Links({ lines, faults, chosen, choose, stop }: LinksProps) {
  const sample = useLive("links", (store) => store.links);
  const slow = new Set(faults.filter((fault) => fault.kind === "slow-link").map((fault) => fault.target));
  const loads = new Map(sample?.links.map((link) => [link.name, link]));
  return lines.map((line) => {
    const load: LinkLoadView | undefined = loads.get(line.name);
    const rate = load?.rate_kbps ? load.rate_kbps * 1000 : null;
    const share = (bits: number | undefined, reported: number | null | undefined): number =>
      reported ?? (rate && bits ? bits / rate : 0);
    return (
      <LinkLine
        key={line.name}
        {...line}
        up={line.up && load?.up !== false}
        slow={slow.has(line.name)}
        ab={stepOf(share(load?.ab?.bits_per_s, load?.ab?.share))}
        ba={stepOf(share(load?.ba?.bits_per_s, load?.ba?.share))}
        abQueue={queueMark(load?.ab?.queued_packets)}
        baQueue={queueMark(load?.ba?.queued_packets)}
        chosen={chosen === line.name}
        choose={choose}
        stop={stop === line.name}
      />
    );
  });
}

interface SwitchesProps {
  fabric: FabricView;
  spots: ReadonlyMap<string, Spot>;
  modal: boolean;
  down: ReadonlySet<string>;
}

function Switches({ fabric, spots, modal, down }: SwitchesProps) {
  const modes = useModes().data?.leaves;
  const now = useNow(500) + useStore().aheadS;
  return fabric.switches.map((switchView: SwitchView) => {
    const spot = spots.get(switchView.name);
    if (!spot) return null;
    const mode = modal ? modes?.find((leaf) => leaf.leaf === switchView.name) : undefined;
    const since = mode ? age(now - mode.since_at) : "";
    return (
      <SwitchBox
        key={switchView.name}
        view={switchView}
        spot={spot}
        mode={mode}
        since={since}
        down={down.has(switchView.name)}
      />
    );
  });
}

/** Return an age short enough for a badge: tenths of a second at first. */
function age(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  return seconds < 60 ? `${seconds.toFixed(0)} s` : duration(seconds).replace(/ \d+ s$/, "");
}
