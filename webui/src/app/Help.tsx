import { Anchor, Kbd, Modal, Table, Text } from "@mantine/core";
import { VIEWS } from "./views";

/** Show the keys, and what each view is for. */
export function Help({ opened, close }: { opened: boolean; close: () => void }) {
  const rows = [
    ...VIEWS.flatMap((view) => [
      { key: view.key, title: view.title, about: view.about },
      ...(view.sections.length > 1 ? view.sections : []).map((section, index) => ({
        key: `${view.key} ${index + 1}`,
        title: `${view.title}: ${section.title}`,
        about: section.about,
      })),
    ]),
    { key: "← → ↑ ↓", title: "On the map", about: "From link to link and host to host; Enter opens" },
    { key: "d", title: "Light, dark, projector", about: "Remembered by this browser" },
    { key: "/", title: "This help", about: "Esc closes it" },
  ];
  return (
    <Modal
      opened={opened}
      onClose={close}
      title="Help"
      size="xl"
      transitionProps={{ duration: 0 }}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Table withRowBorders={false}>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.key}>
              <Table.Td>
                {row.key.split(" ").map((key) => (
                  <Kbd key={key} mr={4}>
                    {key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Th scope="row">{row.title}</Table.Th>
              <Table.Td>{row.about}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Text c="dimmed" mt="sm">
        Everything here is also at{" "}
        <Anchor inherit href="/api/v1/openapi.json">
          the REST API
        </Anchor>
        ; the address of a view holds what is chosen in it, so it can be shared.
      </Text>
    </Modal>
  );
}
