import { type CSSVariablesResolver, createTheme, MantineProvider } from "@mantine/core";
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";

/** Light or dark, or light and large for a room. Chosen here and remembered; public/theme.js sets it before the first paint. */
export const APPEARANCES = ["light", "dark", "projector"] as const;
export type AppearanceName = (typeof APPEARANCES)[number];
const KEY = "capstan-theme";
/** How much larger all is for a room, letters of drawings included. */
const PROJECTOR_SCALE = 1.3;

interface Choice {
  name: AppearanceName;
  scale: number;
  choose: (name: AppearanceName) => void;
}

const Context = createContext<Choice>({ name: "light", scale: 1, choose: () => undefined });
export const useAppearance = (): Choice => useContext(Context);
/** Return the factor by which text and lines of drawings are enlarged. */
export const useScale = (): number => useContext(Context).scale;

const theme = createTheme({
  fontFamily: 'system-ui, "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "DejaVu Sans Mono", monospace',
  // One scale of type: notes, tables and controls, text, headings.
  fontSizes: {
    xs: "calc(0.8125rem * var(--mantine-scale))",
    sm: "calc(0.875rem * var(--mantine-scale))",
    md: "calc(1rem * var(--mantine-scale))",
    lg: "calc(1.125rem * var(--mantine-scale))",
    xl: "calc(1.375rem * var(--mantine-scale))",
  },
  headings: {
    sizes: {
      h1: { fontSize: "calc(1.375rem * var(--mantine-scale))" },
      h2: { fontSize: "calc(1.0625rem * var(--mantine-scale))" },
      h3: { fontSize: "calc(0.9375rem * var(--mantine-scale))" },
    },
  },
  colors: {
    dark: [
      "#e9eef4",
      "#c3ccd6",
      "#a9b6c4",
      "#8593a1",
      "#4a5866",
      "#33414f",
      "#1f2a35",
      "#18212b",
      "#131a22",
      "#10161d",
    ],
    accent: [
      "#eaf3fc",
      "#cfe3f7",
      "#a3cbf0",
      "#7cc0ff",
      "#4d9be6",
      "#2a7fd1",
      "#166dc0",
      "#0b5cad",
      "#094d91",
      "#063b70",
    ],
  },
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 3 },
  autoContrast: true,
  defaultRadius: "md",
  cursorType: "pointer",
  components: {
    Button: {
      defaultProps: { size: "xs", variant: "default" },
      // The library reckons the contrast for the light scheme only.
      vars: (_: unknown, { variant }: { variant?: string }) => ({
        root: variant === "filled" ? { "--button-bg": "var(--on)", "--button-color": "var(--on-ink)" } : {},
      }),
    },
    NativeSelect: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "xs" } },
    Autocomplete: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    Text: { defaultProps: { size: "sm" } },
    Anchor: { defaultProps: { underline: "always" } },
    Table: { defaultProps: { fz: "sm", verticalSpacing: 4, horizontalSpacing: "xs" } },
  },
});

const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#f4f6f8",
    "--mantine-color-text": "var(--ink)",
    "--mantine-color-dimmed": "var(--quiet)",
    "--mantine-color-placeholder": "var(--quiet)",
    "--mantine-color-error": "var(--bad)",
    "--mantine-color-default-border": "#8a96a3",
  },
  dark: {
    "--mantine-color-body": "#10161d",
    "--mantine-color-text": "var(--ink)",
    "--mantine-color-dimmed": "var(--quiet)",
    "--mantine-color-placeholder": "var(--quiet)",
    "--mantine-color-error": "var(--bad)",
    "--mantine-color-default-border": "#6b7a89",
  },
});

/** Set what colours depend on, as public/theme.js does: before drawings read them, which they do ahead of effects here. */
function show(name: AppearanceName): void {
  document.documentElement.dataset["appearance"] = name;
  document.documentElement.dataset["mantineColorScheme"] = name === "dark" ? "dark" : "light";
}

export function Appearance({ children }: { children: ReactNode }) {
  const [name, setName] = useState<AppearanceName>(
    () => (document.documentElement.dataset["appearance"] as AppearanceName | undefined) ?? "light",
  );
  const scale = name === "projector" ? PROJECTOR_SCALE : 1;
  const choice = useMemo(
    () => ({
      name,
      scale,
      choose: (chosen: AppearanceName) => {
        try {
          localStorage.setItem(KEY, chosen);
        } catch {
          // not remembered, then
        }
        show(chosen);
        setName(chosen);
      },
    }),
    [name, scale],
  );
  const scaled = useMemo(() => ({ ...theme, scale }), [scale]);
  return (
    <Context value={choice}>
      <MantineProvider
        theme={scaled}
        forceColorScheme={name === "dark" ? "dark" : "light"}
        cssVariablesResolver={variables}
      >
        {children}
      </MantineProvider>
    </Context>
  );
}
