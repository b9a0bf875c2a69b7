import { Code } from "@mantine/core";

const BLOCK = { my: "xs", style: { whiteSpace: "pre-wrap" } } as const;

/** Show a command. It wraps between its words, not after the hyphens of its options. */
export function Command({ children, block = false }: { children: string; block?: boolean }) {
  const parts = children.split(/(\S*-\S*)/);
  return (
    <Code block={block} {...(block && BLOCK)}>
      {parts.map((text, index) =>
        index % 2 ? (
          <span key={index} style={{ whiteSpace: "nowrap" }}>
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </Code>
  );
}
