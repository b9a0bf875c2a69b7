import { Group, Text, Title } from "@mantine/core";
import { Grid } from "../parts/Grid";
import { Panel } from "../parts/Panel";
import { Marker } from "../parts/SchemeMark";
import { Quiet } from "../parts/Quiet";
import type { SweepPart } from "./sweep";
import { SweepChart } from "./SweepChart";

/**
 * Draw the results of a sweep: a chart for each measure, again for each combination of the other axes' values.
 * *doubtful*: why some are; "": none is.
 */
export function SweepCharts({ parts, doubtful }: { parts: readonly SweepPart[]; doubtful: string }) {
  const lines = new Map(
    parts
      .flatMap(({ charts }) => charts.flatMap((chart) => chart.lines))
      .map((line) => [line.label, line.style]),
  );
  if (lines.size === 0) return null;
  return (
    <Panel title="Schemes over the sweep">
      <Group gap="md" role="list" aria-label="Lines">
        {[...lines].map(([label, { marker, colour }]) => (
          <Text key={label} role="listitem" fw={600}>
            <Marker shape={marker} colour={colour} /> {label}
          </Text>
        ))}
      </Group>
      {parts.map(({ words, charts }) => (
        <section key={words}>
          {words && (
            <Title order={3} mt="sm">
              {words}
            </Title>
          )}
          <Grid least={420}>
            {charts.map((chart) => (
              <SweepChart key={chart.name} chart={chart} />
            ))}
          </Grid>
        </section>
      ))}
      <Quiet>Bands are 95 % intervals{doubtful && `; hollow markers: ${doubtful}`}.</Quiet>
    </Panel>
  );
}
