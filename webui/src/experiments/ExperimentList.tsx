import { Link } from "../app/Link";
import { Asked } from "../parts/Asked";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { dayTime, duration } from "../parts/units";
import { useExperiments } from "./queries";
import { StateMark } from "./StateMark";

export function ExperimentList() {
  const list = useExperiments();
  return (
    <Panel title="Experiments">
      <Asked query={list} what="list of experiments">
        {({ pages }) => {
          const experiments = pages.flatMap((page) => page.experiments);
          return experiments.length === 0 ? (
            <Notice title="No experiment yet">
              Begin one here, or with ./capstan run small: what it finds is kept and shown here.
            </Notice>
          ) : (
            <>
              <table className="numbers">
                <thead>
                  <tr>
                    <th scope="col">experiment</th>
                    <th scope="col">state</th>
                    <th scope="col">began</th>
                    <th scope="col">took</th>
                  </tr>
                </thead>
                <tbody>
                  {experiments.map((one) => (
                    <tr key={one.id}>
                      <th scope="row">
                        <Link href={`/experiments/${one.id}`}>
                          {one.id}: {one.name}
                        </Link>
                        {one.points ? `, ${one.points} points` : ""}
                      </th>
                      <td>
                        <StateMark state={one.state} />
                      </td>
                      <td>{dayTime(one.created_at)}</td>
                      <td>
                        {one.finished_at === null
                          ? "–"
                          : duration(one.finished_at - (one.started_at ?? one.created_at))}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {list.hasNextPage && (
                <button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                  Show older ones
                </button>
              )}
            </>
          );
        }}
      </Asked>
    </Panel>
  );
}
