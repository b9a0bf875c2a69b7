import { useLive } from "../live/useLive";
import { clockTime } from "../parts/units";
import { eventWords } from "./eventWords";

const SHOWN = 5;

/** What happened last, in words. */
export function RecentEvents() {
  const log = useLive("log", (store) => store.log);
  const described = log.flatMap((event) => {
    const words = eventWords(event);
    return words === null ? [] : [{ event, words }];
  });
  if (described.length === 0) return null;
  return (
    <section className="recent" aria-label="Recent events">
      <ul aria-live="polite">
        {described.slice(0, SHOWN).map(({ event, words }) => (
          <li key={event.cursor}>
            <time>{clockTime(event.at)}</time> {words}
          </li>
        ))}
      </ul>
    </section>
  );
}
