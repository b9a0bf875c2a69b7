import { Checkbox, Group, NativeSelect, Text, TextInput, VisuallyHidden } from "@mantine/core";
import { useCallback, useDeferredValue, useMemo } from "react";
import { useSearch } from "../app/location";
import { focusFirst } from "../parts/focus";
import { Column } from "../parts/Grid";
import { Notice } from "../parts/Notice";
import { FlowPaths } from "../paths/FlowPaths";
import { count } from "../parts/units";
import { FollowedRun } from "../watch/FollowedRun";
import { WatchSource } from "../watch/WatchSource";
import { FlowTable } from "./FlowTable";
import { choiceOf, chosenRows, CLASSES, STATES, withUpdates } from "./rows";
import { useAllFlows } from "./useAllFlows";

/** Show all flows that agents of the watched fabric reported, filtered and sorted as the address says. */
export function FlowsPage() {
  return (
    <WatchSource>
      <Flows />
    </WatchSource>
  );
}

function Flows() {
  const [search, change] = useSearch();
  const choice = useMemo(() => choiceOf(search), [search]);
  const { query, known, live, total } = useAllFlows();
  const base = useMemo(() => chosenRows(known, choice), [known, choice]);
  const calm = useDeferredValue(live);
  const rows = useMemo(
    () => withUpdates(base, chosenRows(calm, choice), new Set(calm.map((flow) => flow.id)), choice),
    [base, calm, choice],
  );
  const asked = query.data !== undefined;
  // Said once a choice: samples change the number twice a second.
  const found = useMemo(() => (asked ? `${count(base.length, "flow")} found` : ""), [asked, choice]);
  const chosen = Number(search.get("flow")) || null;
  const close = useCallback(() => {
    focusFirst("[role=row][aria-selected=true] button", "[data-testid=flow-frame]", "input[type=search]");
    change({ flow: null });
  }, [change]);
  const choose = useCallback((id: number) => change({ flow: String(id) }), [change]);
  return (
    <Column>
      <FollowedRun />
      <Group component="form" role="search" align="end" onSubmit={(event) => event.preventDefault()}>
        <TextInput
          type="search"
          label="Find"
          placeholder="h1>h5 7000"
          value={choice.text}
          onChange={(event) => change({ q: event.target.value })}
        />
        <NativeSelect
          label="Class"
          value={choice.trafficClass}
          onChange={(event) => change({ class: event.target.value })}
          data={[{ value: "", label: "all" }, ...CLASSES]}
        />
        <NativeSelect
          label="State"
          value={choice.state}
          onChange={(event) => change({ state: event.target.value })}
          data={[{ value: "", label: "all" }, ...STATES]}
        />
        <Checkbox
          mb={6}
          label="bare acknowledgements, too"
          checked={choice.acks}
          onChange={(event) => change({ acks: event.target.checked ? "1" : null })}
        />
        <Text c="dimmed" mb={4}>
          {count(rows.length, "flow")} of {total.toLocaleString("en-US")}
        </Text>
        <VisuallyHidden role="status">{found}</VisuallyHidden>
      </Group>
      {query.isError && (
        <Notice title="No list of flows" kind="error">
          {query.error.message}
        </Notice>
      )}
      {chosen !== null && <FlowPaths id={chosen} heading={`Flow ${chosen}`} close={close} />}
      {rows.length === 0 && query.data !== undefined ? (
        <Notice title={total === 0 ? "No flow has been seen" : "No flow is like that"}>
          {total === 0
            ? "Host agents report flows while a page watches. Start some traffic, and it shows here."
            : "A word is a host (h1), a pair (h1>h5), a port, a protocol or a flow's number; all words must fit."}
        </Notice>
      ) : (
        <FlowTable
          rows={rows}
          choice={choice}
          chosen={chosen}
          choose={choose}
          sortBy={(column) =>
            change({ sort: choice.sort === column && choice.descending ? column : `-${column}` })
          }
        />
      )}
    </Column>
  );
}
