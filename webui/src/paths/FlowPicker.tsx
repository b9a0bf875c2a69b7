import { NativeSelect } from "@mantine/core";
import { useLive, useStore } from "../live/useLive";
import { byteSize } from "../parts/units";

const RECENT_S = 30;
const SHOWN = 60;

/** Choose the flow to show; without a choice the newest ones are. */
export function FlowPicker({
  chosen,
  choose,
}: {
  chosen: number | null;
  choose: (id: number | null) => void;
}) {
  useLive("flows", (store) => store.flows);
  const traces = useStore()
    .flowHistory.recent(RECENT_S)
    .filter(({ flow }) => flow.traffic_class !== "control");
  const listed = traces.slice(0, SHOWN);
  const missing = chosen !== null && !listed.some(({ flow }) => flow.id === chosen);
  return (
    <NativeSelect
      label="Flow"
      data-picker="flow"
      maw={420}
      value={chosen ?? ""}
      onChange={(event) => choose(event.target.value === "" ? null : Number(event.target.value))}
      data={[
        { value: "", label: "the newest short and long ones" },
        ...(missing ? [{ value: String(chosen), label: String(chosen) }] : []),
        ...listed.map(({ flow }) => ({
          value: String(flow.id),
          label: `${flow.id}: ${flow.source} → ${flow.destination}, ${flow.traffic_class}, ${byteSize(flow.bytes)}`,
        })),
      ]}
    />
  );
}
