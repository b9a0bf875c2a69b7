import { Checkbox, Group } from "@mantine/core";
import { LENGTH_MS, MOST_MS } from "../replay/address";
import { MsField } from "../replay/MsField";
import type { RecordDraft } from "./submission";

/** Edit whether packets of the runs on switches are recorded, and in which window; null: they are not. */
export function RecordPackets({
  record,
  edit,
}: {
  record: RecordDraft | null;
  edit: (record: RecordDraft | null) => void;
}) {
  return (
    <div>
      <Checkbox
        label="Record packets"
        description="To play each scheme's first run again, packet by packet. Recording takes processor time from those runs; notes of the result say so."
        checked={record !== null}
        onChange={(event) => edit(event.target.checked ? { from: "", length: LENGTH_MS } : null)}
      />
      {record !== null && (
        <Group mt="xs" gap="xs" role="group" aria-label="Window to record">
          <MsField
            label="from"
            placeholder="first short flow"
            value={record.from}
            change={(from) => edit({ ...record, from })}
          />
          <MsField
            label="for"
            least={1}
            most={MOST_MS}
            value={record.length}
            change={(length) => edit({ ...record, length })}
          />
        </Group>
      )}
    </div>
  );
}
