// One request to the issuer for all waiting callers: when it fails, when a caller
// is cancelled, when the app sets a token meanwhile.

import DaybookTestKit
import EventSourcing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// An issuer that answers when the test lets it.
private final class Issuer: Sendable {
    private struct State {
        var asked: [AccessToken?] = []
        var open: [CheckedContinuation<AccessToken?, any Error>] = []
    }

    struct Unreachable: Error {}

    private let state = Mutex(State())

    /// The old tokens of all requests so far.
    var asked: [AccessToken?] { state.withLock { $0.asked } }

    func renew(_ old: AccessToken?) async throws -> AccessToken? {
        try await withCheckedThrowingContinuation { continuation in
            state.withLock { state in
                state.asked.append(old)
                state.open.append(continuation)
            }
        }
    }

    /// Waits until this number of requests was made.
    func waitForRequests(_ count: Int) async {
        while asked.count < count { await Task.yield() }
    }

    func answer(_ answer: Result<AccessToken?, any Error>) {
        let open = state.withLock { state in
            defer { state.open = [] }
            return state.open
        }
        for continuation in open { continuation.resume(with: answer) }
    }
}

@Suite(.timeLimit(.minutes(10))) struct RefreshingCredentialsTests {
    private let issuer = Issuer()
    private let store = InMemorySecretStore()
    private let first = AccessToken("first")
    private let second = AccessToken(
        "second", expiresAt: Timestamp(milliseconds: 1_771_756_262_000))

    private func credentials() -> RefreshingCredentials {
        RefreshingCredentials(store: store) { [issuer] in try await issuer.renew($0) }
    }

    /// Lets started tasks reach their suspension point.
    private func settle() async { for _ in 0..<100 { await Task.yield() } }

    @Test(.verifies("SEC-12")) func `a hundred waiting callers share one request to the issuer`()
        async throws
    {
        let credentials = credentials()
        try await credentials.set(first)
        let waiting = (0..<100).map { _ in Task { try await credentials.refresh(first) } }
        await issuer.waitForRequests(1)
        await settle()
        issuer.answer(.success(second))
        for task in waiting { #expect(try await task.value == second) }
        #expect(issuer.asked == [first])
        #expect(try await credentials.token() == second)
    }

    @Test(.verifies("SEC-12"))
    func `a caller with an older token gets the current one without a request`() async throws {
        let credentials = credentials()
        try await credentials.set(second)
        #expect(try await credentials.refresh(first) == second)
        #expect(try await credentials.refresh(nil) == second)
        #expect(issuer.asked.isEmpty)
        // Also while a request is under way.
        let waiting = Task { try await credentials.refresh(second) }
        await issuer.waitForRequests(1)
        #expect(try await credentials.refresh(first) == second)
        issuer.answer(.success(AccessToken("third")))
        #expect(try await waiting.value == AccessToken("third"))
        #expect(issuer.asked.count == 1)
    }

    @Test(.verifies("SEC-13")) func `cancelling one caller does not cancel the others`()
        async throws
    {
        let credentials = credentials()
        try await credentials.set(first)
        let tasks = (0..<10).map { _ in Task { try await credentials.refresh(first) } }
        await issuer.waitForRequests(1)
        await settle()
        // The caller that started the request, or any other.
        for task in tasks[..<9] { task.cancel() }
        for task in tasks[..<9] {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        issuer.answer(.success(second))
        #expect(try await tasks[9].value == second)
        #expect(issuer.asked.count == 1)
    }

    @Test(.verifies("SEC-13"))
    func `a token that arrives after all callers were cancelled is stored`() async throws {
        let credentials = credentials()
        let task = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        issuer.answer(.success(second))
        while try await credentials.token() == nil { await Task.yield() }
        #expect(try await credentials.refresh(first) == second)
        #expect(issuer.asked.count == 1)
        // A caller that is cancelled before it begins makes no request.
        let late = Task { [second] in
            while !Task.isCancelled { await Task.yield() }
            return try await credentials.refresh(second)
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(issuer.asked.count == 1)
    }

    @Test(.verifies("SEC-14"))
    func `an error reaches all waiting callers, and the next call requests again`()
        async throws
    {
        let credentials = credentials()
        try await credentials.set(first)
        let tasks = (0..<5).map { _ in Task { try await credentials.refresh(first) } }
        await issuer.waitForRequests(1)
        await settle()
        issuer.answer(.failure(Issuer.Unreachable()))
        for task in tasks {
            await #expect(throws: Issuer.Unreachable.self) { try await task.value }
        }
        #expect(issuer.asked.count == 1)
        #expect(try await credentials.token() == first)
        let again = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(2)
        issuer.answer(.success(second))
        #expect(try await again.value == second)
    }

    @Test(.verifies("SEC-14"))
    func `a refusal is remembered until the app sets a token`() async throws {
        let credentials = credentials()
        try await credentials.set(first)
        let refused = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(1)
        issuer.answer(.success(nil))
        #expect(try await refused.value == nil)
        #expect(try await credentials.refresh(first) == nil)
        #expect(issuer.asked.count == 1)
        try await credentials.set(second)
        #expect(try await credentials.refresh(first) == second)
        let renewed = Task { try await credentials.refresh(second) }
        await issuer.waitForRequests(2)
        issuer.answer(.success(AccessToken("third")))
        #expect(try await renewed.value == AccessToken("third"))
    }

    @Test(.verifies("SEC-15"))
    func `a token that is set while a request is under way takes precedence`()
        async throws
    {
        let credentials = credentials()
        try await credentials.set(first)
        let waiting = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(1)
        await settle()
        try await credentials.set(second)
        #expect(try await waiting.value == second)
        issuer.answer(.success(AccessToken("late")))
        await settle()
        #expect(try await credentials.token() == second)
        #expect(store.values == ["daybook.token": StoredToken.bytes(second)])
    }

    @Test(.verifies("SEC-15")) func `signing out deletes the token, and no other is requested`()
        async throws
    {
        let credentials = credentials()
        try await credentials.set(first)
        let waiting = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(1)
        await settle()
        try await credentials.signOut()
        #expect(try await waiting.value == nil)
        issuer.answer(.success(second))
        await settle()
        #expect(try await credentials.token() == nil)
        #expect(try await credentials.refresh(first) == nil)
        #expect(try await credentials.refresh(nil) == nil)
        #expect(issuer.asked.count == 1)
        #expect(store.values.isEmpty)
        // A restart does not restore it.
        #expect(try await self.credentials().token() == nil)
        try await credentials.set(second)
        #expect(try await credentials.token() == second)
    }

    @Test(.verifies("SEC-3", "SEC-16")) func `the token outlives a restart`() async throws {
        try await credentials().set(second)
        #expect(
            store.values == [
                "daybook.token": Array(
                    #"{"value":"second","expiresAt":1771756262000}"#.utf8)
            ])
        #expect(try await credentials().token() == second)
        try await credentials().set(first)
        #expect(store.values == ["daybook.token": Array(#"{"value":"first"}"#.utf8)])
        #expect(try await credentials().token() == first)
        // A renewed token is stored, too.
        let restarted = credentials()
        let renewed = Task { try await restarted.refresh(first) }
        await issuer.waitForRequests(1)
        issuer.answer(.success(second))
        #expect(try await renewed.value == second)
        #expect(try await credentials().token() == second)
    }

    @Test(.verifies("SEC-3")) func `a stored value that is not a token is ignored`() async throws {
        for text in ["", "{", "{}", "[]", #"{"value":1}"#, #"{"value":"x","expiresAt":"soon"}"#] {
            try store.write(Array(text.utf8), for: "daybook.token")
            let credentials = credentials()
            #expect(try await credentials.token() == nil)
            #expect(await credentials.storeFailure?.code == .damaged)
        }
        try store.write(Array(#"{"value":"x","more":[1]}"#.utf8), for: "daybook.token")
        #expect(try await credentials().token() == AccessToken("x"))
    }

    @Test(.verifies("SEC-16"))
    func `a failing secret store does not delay a caller, and its error is available`() async throws
    {
        let credentials = credentials()
        store.fail(with: SecretStoreError(.locked, location: "memory", "the device is locked"))
        await #expect(throws: SecretStoreError.self) { try await credentials.token() }
        await #expect(throws: SecretStoreError.self) { try await credentials.set(first) }
        #expect(try await credentials.token() == first)
        let renewed = Task { try await credentials.refresh(first) }
        await issuer.waitForRequests(1)
        issuer.answer(.success(second))
        #expect(try await renewed.value == second)
        #expect(await credentials.storeFailure?.code == .locked)
        store.fail(with: nil)
        try await credentials.set(second)
        #expect(await credentials.storeFailure == nil)
        #expect(try await self.credentials().token() == second)
        store.fail(with: SecretStoreError(.io, location: "memory", "it fails"))
        await #expect(throws: SecretStoreError.self) { try await credentials.signOut() }
        store.fail(with: nil)
        try await credentials.signOut()
        #expect(store.values.isEmpty)
    }

    @Test(.verifies("SEC-4")) func `a certificate is saved, loaded and deleted`() async throws {
        let certificate = ClientCertificate(pkcs12: [0x30, 0x82, 0, 255], password: "p\"ä")
        #expect(try await ClientCertificate.load(from: store) == nil)
        try await certificate.save(to: store)
        #expect(
            store.values == [
                "daybook.client-certificate": Array(
                    #"{"data":"MIIA/w==","password":"p\"ä"}"#.utf8)
            ])
        #expect(try await ClientCertificate.load(from: store) == certificate)
        try await ClientCertificate.delete(from: store)
        #expect(try await ClientCertificate.load(from: store) == nil)
        for text in ["{}", #"{"data":"!","password":"p"}"#, #"{"data":"MIIA/w=="}"#] {
            try store.write(Array(text.utf8), for: ClientCertificate.defaultName)
            let error = await #expect(throws: SecretStoreError.self) {
                try await ClientCertificate.load(from: store)
            }
            #expect(error?.code == .damaged)
        }
    }
}
