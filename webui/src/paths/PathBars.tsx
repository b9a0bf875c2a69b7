import { percent } from "../parts/units";
import { pathName } from "./names";
import { type Counts, effectivePaths, shares, total } from "./shares";

interface Props {
  title: string;
  counts: Counts;
  /** All paths that there are, in order. */
  stamps: readonly string[];
  names: ReadonlyMap<string, string>;
  testId?: string;
}

/** A bar a path: its share of the packets. */
export function PathBars({ title, counts, stamps, names, testId }: Props) {
  const share = shares(counts);
  const all = total(counts);
  return (
    <section className="path-bars" aria-label={title} data-testid={testId} data-packets={all}>
      <h3>{title}</h3>
      <p className="quiet">
        {all === 0
          ? "no packets in the last 10 s"
          : `${all.toLocaleString("en-US")} packets; as spread as ${effectivePaths(counts).toFixed(1)} of ${stamps.length} paths`}
      </p>
      <ul>
        {stamps.map((stamp) => {
          const value = share[stamp] ?? 0;
          return (
            <li key={stamp} data-stamp={stamp} data-share={value.toFixed(4)}>
              <span className="bar-name">{pathName(stamp, names)}</span>
              <span className="bar-track">
                <span className="bar" style={{ width: `${(100 * value).toFixed(1)}%` }} />
              </span>
              <span className="bar-value">{all === 0 ? "–" : percent(value)}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
