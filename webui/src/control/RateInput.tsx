import { NumberInput } from "@mantine/core";

type Rate = number | string;

/** Edit the rate to which a link is slowed; a string while it is being typed. */
export function RateInput({ value, onChange }: { value: Rate; onChange: (rate: Rate) => void }) {
  return (
    <NumberInput
      size="xs"
      w={130}
      aria-label="Rate in Mbit/s"
      suffix=" Mbit/s"
      min={0.1}
      value={value}
      onChange={onChange}
    />
  );
}
