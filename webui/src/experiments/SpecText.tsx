import { Button, Group } from "@mantine/core";
import { useRef } from "react";
import styles from "./experiments.module.css";
import { lineOf } from "./problems";
import type { WrongView } from "../api/schema";

interface Props {
  text: string;
  edit: (text: string) => void;
  problems: readonly WrongView[];
}

/** Edit a whole spec as YAML, numbered; a line with a problem is marked, and the problem links to it. */
export function SpecText({ text, edit, problems }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const wrong = new Set(problems.map((problem) => problem.line));
  const lines = text.split("\n");
  const goTo = (line: number): void => {
    const area = field.current;
    if (!area) return;
    area.focus();
    area.setSelectionRange(...lineOf(text, line));
    area.scrollTop = (area.scrollHeight * Math.max(0, line - 4)) / Math.max(1, lines.length);
  };
  return (
    <>
      <div className={styles["text"]}>
        <pre ref={numbers} aria-hidden="true">
          {lines.map((_, index) => (
            <span
              key={index}
              {...(wrong.has(index + 1) ? { className: styles["wrong"], "data-testid": "wrong-line" } : {})}
            >
              {wrong.has(index + 1) ? "✕ " : ""}
              {index + 1}
              {"\n"}
            </span>
          ))}
        </pre>
        <textarea
          ref={field}
          aria-label="Spec as YAML"
          aria-invalid={problems.length > 0}
          rows={20}
          wrap="off"
          spellCheck={false}
          value={text}
          onChange={(event) => edit(event.target.value)}
          onScroll={(event) => {
            if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
      {problems.some((problem) => problem.line) && (
        <Group gap="xs" mt={6}>
          {[...new Set(problems.flatMap((problem) => problem.line ?? []))].map((line) => (
            <Button key={line} onClick={() => goTo(line)}>
              Go to line {line}
            </Button>
          ))}
        </Group>
      )}
    </>
  );
}
