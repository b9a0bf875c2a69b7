import type { ReactNode } from "react";
import styles from "./Grid.module.css";

interface GridProps {
  least?: number;
  most?: number;
  /** Pixels between them. */
  gap?: number;
  children: ReactNode;
}

/** Lay out panels side by side, as many as fit with *least* pixels each but *most* at most, which fill the row. */
export function Grid({ least = 460, most = 12, gap = 14, children }: GridProps) {
  return (
    <div
      className={styles["grid"]}
      style={{ "--least": `${least}px`, "--most": most, "--gap": `${gap}px` } as React.CSSProperties}
    >
      {children}
    </div>
  );
}

/** Lay out panels below each other. */
export function Column({ children }: { children: ReactNode }) {
  return <div className={styles["column"]}>{children}</div>;
}

/** Lay out a large part and a narrow part beside it; below it where the window is narrow. */
export function Split({ children }: { children: ReactNode }) {
  return <div className={styles["split"]}>{children}</div>;
}
