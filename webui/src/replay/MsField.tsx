import { NumberInput } from "@mantine/core";

/** Edit a time in whole milliseconds of a run. */
export function MsField({
  label,
  value,
  change,
  least = 0,
  most,
  placeholder,
}: {
  label: string;
  /** As typed; "": nothing is. */
  value: number | string;
  change: (value: number | string) => void;
  least?: number;
  most?: number;
  placeholder?: string;
}) {
  return (
    <NumberInput
      size="xs"
      w={150}
      label={label}
      suffix=" ms"
      min={least}
      {...(most !== undefined && { max: most })}
      {...(placeholder !== undefined && { placeholder })}
      allowDecimal={false}
      value={value}
      onChange={change}
    />
  );
}
