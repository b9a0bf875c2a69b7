import { Title } from "@mantine/core";
import { Quiet } from "../parts/Quiet";
import { percent } from "../parts/units";
import { pathName } from "./names";
import { type Counts, effectivePaths, shares, total } from "./shares";
import styles from "./paths.module.css";

interface Props {
  title: string;
  counts: Counts;
  /** All paths that there are, in order. */
  stamps: readonly string[];
  names: ReadonlyMap<string, string>;
  testId?: string;
}

/** Draw a bar a path: its share of the packets. */
export function PathBars({ title, counts, stamps, names, testId }: Props) {
  const share = shares(counts);
  const all = total(counts);
  return (
    <section aria-label={title} data-testid={testId} data-packets={all}>
      <Title order={3}>{title}</Title>
      <Quiet>
        {all === 0
          ? "no packets in the last 10 s"
          : `${all.toLocaleString("en-US")} packets; as spread as ${effectivePaths(counts).toFixed(1)} of ${stamps.length} paths`}
      </Quiet>
      <ul className={styles["bars"]}>
        {stamps.map((stamp) => {
          const value = share[stamp] ?? 0;
          return (
            <li key={stamp} data-stamp={stamp} data-share={value.toFixed(4)}>
              <span>{pathName(stamp, names)}</span>
              <span className={styles["track"]}>
                <span className={styles["bar"]} style={{ width: `${(100 * value).toFixed(1)}%` }} />
              </span>
              <span>{all === 0 ? "–" : percent(value)}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
