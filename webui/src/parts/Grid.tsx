import type { ReactNode } from "react";
import styles from "./Grid.module.css";

/** Panels side by side, as many as fit with *least* pixels each; none is wider than it has to be for the row to be full. */
export function Grid({ least = 460, children }: { least?: number; children: ReactNode }) {
  return (
    <div className={styles["grid"]} style={{ "--least": `${least}px` } as React.CSSProperties}>
      {children}
    </div>
  );
}

/** Panels one below the other. */
export function Column({ children }: { children: ReactNode }) {
  return <div className={styles["column"]}>{children}</div>;
}

/** A large part and a narrow one beside it; below it where the window is narrow. */
export function Split({ children }: { children: ReactNode }) {
  return <div className={styles["split"]}>{children}</div>;
}
