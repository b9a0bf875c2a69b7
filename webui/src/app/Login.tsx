import { Button, Code, Container, Group, PasswordInput, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { openSession, RefusedError, type Session } from "../api/client";
import { connect } from "../live/connection";
import { useStore } from "../live/useLive";
import { Notice } from "../parts/Notice";
import { App } from "./App";
import { LogOutContext, RoleContext } from "./role";
import { leave, onSessionOver } from "./session";

const mayAnswerSoon = ({ status }: RefusedError): boolean => status === 0 || status >= 500;

/** A session lasts 12 hours, and this much longer each time. */
const RENEW_MS = 3_600_000;

/** Ask for a token where the controller requires one, then watch the controller and show the page. */
export function Login() {
  const store = useStore();
  const queries = useQueryClient();
  const [session, setSession] = useState<Session | null>(null);
  const [refused, setRefused] = useState<RefusedError | null>(null);
  const [leaving, setLeaving] = useState(false);
  const [stays, setStays] = useState("");
  // A token that was typed while the controller did not answer: it is sent again.
  const unanswered = useRef<string | undefined>(undefined);

  async function enter(token?: string): Promise<void> {
    try {
      setSession(await openSession(token));
      unanswered.current = undefined;
      setRefused(null);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      unanswered.current = mayAnswerSoon(error) ? token : undefined;
      setRefused(error);
      if (error.status === 401) setSession(null);
    }
  }

  /** End the session and load the page anew; until then nothing asks for a token, which would be lost. */
  async function logOut(): Promise<void> {
    setLeaving(true);
    const why = await leave();
    setStays(why);
    if (why === "") location.assign("/");
    else setLeaving(false);
  }

  useEffect(() => {
    void enter();
  }, []);
  useEffect(() => {
    if (!refused || !mayAnswerSoon(refused)) return;
    const timer = setTimeout(() => void enter(unanswered.current), 2000);
    return () => clearTimeout(timer);
  }, [refused]);
  const role = session?.role;
  const ends = session !== null && session.until !== null;
  useEffect(() => (role === undefined ? undefined : connect(store, queries)), [role, store, queries]);
  useEffect(() => {
    if (!ends) return;
    const timer = setInterval(() => void enter(), RENEW_MS);
    return () => clearInterval(timer);
  }, [ends]);
  useEffect(
    () => (role === undefined ? undefined : onSessionOver(queries, () => void enter())),
    [role, queries],
  );

  if (session !== null) {
    return (
      <RoleContext value={session.role}>
        <LogOutContext value={ends ? () => void logOut() : null}>
          {stays && (
            <Notice title="You are still logged in" kind="error">
              {stays}
            </Notice>
          )}
          <App />
        </LogOutContext>
      </RoleContext>
    );
  }
  if (refused === null || leaving) return null;
  return (
    <Container component="main" size="xs" pt={80}>
      <title>Capstan</title>
      <Title>Capstan</Title>
      {refused.status === 401 ? (
        <TokenForm enter={enter} />
      ) : (
        <Text role="alert" my="sm">
          {refused.message}
          {mayAnswerSoon(refused) && " This page tries again every two seconds."}
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
