import { Dialog } from "../parts/Dialog";
import { VIEWS } from "./views";

/** Keys, and what each view is for. */
export function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Help" close={close}>
      <table className="keys">
        <tbody>
          {VIEWS.map((view) => (
            <tr key={view.path}>
              <td>
                <kbd>{view.key}</kbd>
              </td>
              <th scope="row">{view.title}</th>
              <td>{view.about}</td>
            </tr>
          ))}
          <tr>
            <td>
              <kbd>d</kbd>
            </td>
            <th scope="row">Dark or light</th>
            <td>Remembered by this browser</td>
          </tr>
          <tr>
            <td>
              <kbd>/</kbd>
            </td>
            <th scope="row">This help</th>
            <td>
              <kbd>Esc</kbd> closes it
            </td>
          </tr>
        </tbody>
      </table>
      <p className="quiet">
        Everything here is also at <a href="/api/v1/openapi.json">the REST API</a>; the address of a view
        holds what is chosen in it, so it can be shared.
      </p>
    </Dialog>
  );
}
