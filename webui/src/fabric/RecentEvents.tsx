import { List, Text } from "@mantine/core";
import { useLive } from "../live/useLive";
import { Panel } from "../parts/Panel";
import { Quiet } from "../parts/Quiet";
import { timeOfEvent } from "../parts/units";
import { eventWords } from "./eventWords";

const SHOWN = 8;

/** List the newest events in words, except those of the kinds *without*. */
export function RecentEvents({ without = [] }: { without?: readonly string[] }) {
  const log = useLive("log", (store) => store.log);
  const now = Date.now() / 1000;
  const described = log.flatMap((event) => {
    const words = without.includes(event.kind) ? null : eventWords(event);
    return words === null ? [] : [{ event, words }];
  });
  return (
    <Panel title="Recent events">
      {described.length === 0 && <Quiet>No events yet.</Quiet>}
      <List listStyleType="none" size="sm" aria-live="polite">
        {described.slice(0, SHOWN).map(({ event, words }) => (
          <List.Item key={event.cursor}>
            <Text span c="dimmed">
              <time>{timeOfEvent(event.at, now)}</time>
            </Text>{" "}
            {words}
          </List.Item>
        ))}
      </List>
    </Panel>
  );
}
