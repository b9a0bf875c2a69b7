import { useRun } from "../api/queries";
import { useSource } from "../api/source";
import { Link } from "../app/Link";
import { Quiet } from "../parts/Quiet";

/** Show which run a view follows, where it follows an experiment's; below a WatchSource. */
export function FollowedRun() {
  const { experiment, here } = useRun();
  const elsewhere = useSource() !== "";
  if (experiment === null || !(elsewhere || here)) return null;
  return (
    <Quiet>
      This is the run of <Link href={`/compare/${experiment}`}>experiment {experiment}</Link>, live.
    </Quiet>
  );
}
