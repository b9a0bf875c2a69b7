import { Button, Code, Container, Group, PasswordInput, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { openSession, RefusedError } from "../api/client";
import { connect } from "../live/connection";
import { useStore } from "../live/useLive";
import { App } from "./App";
import { type ReaderRole, RoleContext } from "./role";

/** Asks for a token where the controller wants one, then watches it and shows the page. */
export function Login() {
  const store = useStore();
  const queries = useQueryClient();
  const [role, setRole] = useState<ReaderRole | null>(null);
  const [refused, setRefused] = useState<RefusedError | null>(null);

  async function enter(token?: string): Promise<void> {
    try {
      setRole(await openSession(token));
      setRefused(null);
    } catch (error) {
      if (error instanceof RefusedError) setRefused(error);
      else throw error;
    }
  }

  useEffect(() => {
    void enter();
  }, []);
  useEffect(() => {
    if (refused?.status !== 0) return;
    const timer = setTimeout(() => void enter(), 2000);
    return () => clearTimeout(timer);
  }, [refused]);
  useEffect(() => (role === null ? undefined : connect(store, queries)), [role, store, queries]);

  if (role !== null) {
    return (
      <RoleContext value={role}>
        <App />
      </RoleContext>
    );
  }
  if (refused === null) return null;
  return (
    <Container component="main" size="xs" pt={80}>
      <title>Capstan</title>
      <Title>Capstan</Title>
      {refused.status === 401 ? (
        <TokenForm enter={enter} />
      ) : (
        <Text role="alert" my="sm">
          {refused.message}
          {refused.status === 0 && " This page tries again every two seconds."}
        </Text>
      )}
    </Container>
  );
}

function TokenForm({ enter }: { enter: (token: string) => Promise<void> }) {
  const [token, setToken] = useState("");
  const [tried, setTried] = useState(false);
  function submit(event: FormEvent): void {
    event.preventDefault();
    void enter(token.trim()).then(() => setTried(true));
  }
  return (
    <form onSubmit={submit}>
      <Text my="sm">
        On this address the controller asks for a token. It was shown when it first started; it is in the
        files <Code>api-token</Code> (may change things) and <Code>api-read-token</Code> (may only look) of
        its data directory.
      </Text>
      <Group align="end">
        <PasswordInput
          label="Token"
          autoComplete="current-password"
          flex={1}
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
        />
        <Button type="submit" variant="filled" size="sm" disabled={!token.trim()}>
          Enter
        </Button>
      </Group>
      {tried && (
        <Text role="alert" c="error" mt="sm">
          The controller does not know this token.
        </Text>
      )}
    </form>
  );
}
