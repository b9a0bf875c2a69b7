import type { ReactNode } from "react";
import styles from "./Grid.module.css";

interface GridProps {
  least?: number;
  most?: number;
  children: ReactNode;
}

/** Panels side by side, as many as fit with *least* pixels each but *most* at most, which fill the row. */
export function Grid({ least = 460, most = 12, children }: GridProps) {
  return (
    <div
      className={styles["grid"]}
      style={{ "--least": `${least}px`, "--most": most } as React.CSSProperties}
    >
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
