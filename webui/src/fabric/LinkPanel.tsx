import type { LoadView } from "../api/schema";
import { KEPT_S, type LinkPoint } from "../live/linkHistory";
import { useLive, useStore } from "../live/useLive";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { TimeChart } from "../parts/TimeChart";
import { bitRate, digits, percent } from "../parts/units";
import { LinkControls } from "../control/LinkControls";

/** One link over the last minute: rate, queue and drops of each direction. */
export function LinkPanel({ name, close }: { name: string; close: () => void }) {
  const sample = useLive("links", (store) => store.links);
  const points = useStore().linkHistory.of(name);
  const last = points.at(-1);
  const [a, b] = name.split("-", 2);
  if (!last || !sample) {
    return (
      <Panel title={`Link ${name}`} close={close}>
        <Notice title="No data for this link">
          There is no link of this name, or no sample has come yet.
        </Notice>
      </Panel>
    );
  }
  const of = (
    read: (load: LoadView) => number | null,
  ): { ab: [number, number | null][]; ba: [number, number | null][] } => ({
    ab: points.map((point) => [point.at, point.ab && read(point.ab)]),
    ba: points.map((point) => [point.at, point.ba && read(point.ba)]),
  });
  const series = (read: (load: LoadView) => number | null) => {
    const { ab, ba } = of(read);
    return [
      { name: `${a} → ${b}`, className: "series-0", points: ab },
      { name: `${b} → ${a}`, className: "series-1", points: ba },
    ];
  };
  const reported = (read: (load: LoadView) => number | null): boolean =>
    points.some((point) => [point.ab, point.ba].some((load) => load !== null && read(load) !== null));
  const range = { from: sample.at - KEPT_S, to: sample.at };
  const rate = last.rate_kbps === null ? null : last.rate_kbps * 1000;
  return (
    <Panel title={`Link ${name}`} close={close}>
      <p>
        {last.up ? "up" : "✕ down"}
        {rate !== null && <>, carries {bitRate(rate)} each way</>}
      </p>
      <Now a={a ?? ""} b={b ?? ""} point={last} />
      <TimeChart
        title="Rate"
        series={series((load) => load.bits_per_s)}
        {...range}
        atLeast={rate ?? 1000}
        format={bitRate}
        limit={rate === null ? null : { value: rate, name: "the link's rate" }}
      />
      {reported((load) => load.queued_packets) && (
        <TimeChart
          title="Packets that wait"
          series={series((load) => load.queued_packets)}
          {...range}
          atLeast={8}
          format={(value) => `${digits(value)} pkt`}
        />
      )}
      {reported((load) => load.dropped_per_s) && (
        <TimeChart
          title="Dropped"
          series={series((load) => load.dropped_per_s)}
          {...range}
          atLeast={4}
          format={(value) => `${digits(value)} /s`}
        />
      )}
      <LinkControls key={name} name={name} up={last.up} rateMbps={rate === null ? null : rate / 1e6} />
    </Panel>
  );
}

function Now({ a, b, point }: { a: string; b: string; point: LinkPoint }) {
  const rows: readonly [string, (load: LoadView) => string | null][] = [
    ["rate", (load) => bitRate(load.bits_per_s)],
    ["of the link", (load) => (load.share === null ? null : percent(load.share))],
    ["packets", (load) => `${digits(load.packets_per_s)} /s`],
    ["waiting", (load) => (load.queued_packets === null ? null : `${load.queued_packets} pkt`)],
    ["dropped", (load) => (load.dropped_per_s === null ? null : `${digits(load.dropped_per_s)} /s`)],
  ];
  return (
    <table className="numbers">
      <thead>
        <tr>
          <th scope="col">now</th>
          <th scope="col">
            {a} → {b}
          </th>
          <th scope="col">
            {b} → {a}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, text]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{(point.ab && text(point.ab)) ?? "–"}</td>
            <td>{(point.ba && text(point.ba)) ?? "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
