import { Link } from "./Link";
import { VIEWS } from "./views";

export function Navigation({ current }: { current: string | undefined }) {
  return (
    <nav aria-label="Views">
      {VIEWS.map((view) => (
        <Link
          key={view.path}
          href={`/${view.path}`}
          aria-current={view.path === current ? "page" : undefined}
          aria-keyshortcuts={view.key}
          title={`${view.about} (key ${view.key})`}
        >
          {view.title}
        </Link>
      ))}
    </nav>
  );
}
