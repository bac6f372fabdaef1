// The rules of the types of photos, albums and the device's media library. Spec/model/events.md, EVT-7.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func normalised(_ type: String, _ data: String) throws(EventError) -> EventDraft {
    var draft = EventDraft(type: "daybook.\(type)", data: .json(Array(data.utf8)))
    try OfflineModel.catalogue.normalise(&draft)
    return draft
}

@Suite(.verifies("EVT-7")) struct MediaEventTests {
    private static let time = "2023-11-20T14:06:57.863+01:00"
    private static let asset =
        #""assetId":"a","ownerId":"u","checksum":"c","type":"image","fileName":"","#
        + #""fileCreatedAt":"\#(time)","fileModifiedAt":"\#(time)","updatedAt":"\#(time)""#
    private static let album =
        #""albumId":"s","ownerId":"u","name":"","createdAt":"\#(time)","modifiedAt":"\#(time)""#

    @Test(
        .verifies("EVT-2", "MED-18"),
        arguments: [
            ("asset.stored", "{\(asset)}", "a"),
            (
                "asset.stored",
                #"{\#(asset),"durationSeconds":0,"width":3.0,"height":1e1,"isTrashed":true}"#, "a"
            ),
            ("asset.removed", #"{"assetId":"a"}"#, "a"), ("album.stored", "{\(album)}", "s"),
            ("album.removed", #"{"albumId":"s"}"#, "s"),
            ("album.linked", #"{"albumId":"s","assetIds":["a"]}"#, "s"),
            ("album.unlinked", #"{"albumId":"s","assetIds":[],"userIds":["u","u"]}"#, "s"),
            ("backupalbum.stored", #"{"albumId":"s","name":"","selection":"none"}"#, "s"),
            ("backupalbum.removed", #"{"albumId":"s"}"#, "s"),
            ("duplicate.stored", #"{"deviceAssetId":"d"}"#, "d"),
            ("duplicate.removed", #"{"deviceAssetId":"d"}"#, "d"),
            ("etag.stored", #"{"userId":"u","assetCount":9e2,"time":"\#(time)"}"#, "u"),
            ("etag.removed", #"{"userId":"u"}"#, "u"),
            ("deviceasset.stored", #"{"platform":"android","assetId":"d","hash":"h"}"#, "d"),
            (
                "deviceasset.stored",
                #"{"platform":"ios","assetId":"d","hash":"h","modifiedTime":"\#(time)"}"#, "d"
            ),
            ("deviceasset.removed", #"{"platform":"ios","assetId":"d"}"#, "d"),
        ])
    func `each type takes its subject from its data and stays on the device`(
        type: String, data: String, subject: String
    ) throws {
        let draft = try normalised(type, data)
        #expect(draft.subject == subject)
        #expect(draft.lane == nil)
        #expect(try #require(OfflineModel.catalogue[draft.type]).action == nil)
    }

    @Test(
        .verifies("EVT-1"),
        arguments: [
            ("asset.stored", #"{\#(asset.replacing("\"a\"", with: "\"\""))}"#),
            ("asset.stored", #"{\#(asset.replacing("image", with: "photo"))}"#),
            ("asset.stored", #"{\#(asset.replacing("\"fileName\":\"\",", with: ""))}"#),
            ("asset.stored", #"{\#(asset.replacing("2023-11-20T", with: ""))}"#),
            ("asset.stored", #"{\#(asset),"remoteId":null}"#),
            ("asset.stored", #"{\#(asset),"localId":""}"#),
            ("asset.stored", #"{\#(asset),"durationSeconds":-0.5}"#),
            ("asset.stored", #"{\#(asset),"durationSeconds":1e999}"#),
            ("asset.stored", #"{\#(asset),"durationSeconds":null}"#),
            ("asset.stored", #"{\#(asset),"width":-1}"#),
            ("asset.stored", #"{\#(asset),"height":1.5}"#),
            ("asset.stored", #"{\#(asset),"isFavorite":1}"#),
            ("asset.stored", #"{\#(asset),"assetId":"b"}"#), ("asset.removed", "[]"),
            ("album.stored", #"{\#(album),"startDate":null}"#),
            ("album.stored", #"{\#(album.replacing("\"s\"", with: "7"))}"#),
            ("album.linked", #"{"albumId":"s"}"#),
            ("album.linked", #"{"albumId":"s","assetIds":[],"userIds":[]}"#),
            ("album.unlinked", #"{"albumId":"s","assetIds":[""]}"#),
            ("album.unlinked", #"{"albumId":"s","userIds":"u"}"#),
            ("backupalbum.stored", #"{"albumId":"s","name":"","selection":"all"}"#),
            ("duplicate.stored", "{}"),
            ("etag.stored", #"{"userId":"u","assetCount":-1,"time":"\#(time)"}"#),
            ("etag.stored", #"{"userId":"u","time":"\#(time)"}"#),
            ("deviceasset.stored", #"{"platform":"ios","assetId":"d","hash":"h"}"#),
            ("deviceasset.stored", #"{"platform":"web","assetId":"d","hash":"h"}"#),
            ("deviceasset.removed", #"{"assetId":"d"}"#),
        ])
    func `data that break a rule are refused`(type: String, data: String) {
        #expect { _ = try normalised(type, data) } throws: {
            ($0 as? EventError)?.code == .invalidData
        }
    }

    @Test(.verifies("MED-1"))
    func `written data read back equal, and are written again as the same bytes`() throws {
        func check<Payload: EventPayload>(_ payload: Payload) throws {
            let json = try payload.json()
            let read = try Payload(json: json)
            try #require(try read.json() == json)
            try #require(read.subjectText == payload.subjectText)
            if let one = payload as? AssetStored, let other = read as? AssetStored {
                try #require(one == other)
            }
        }
        try Property.check("json(read(json)) = json", runs: 500) { choices in
            try check(choices.mediaPayload())
        }
    }

    @Test(.verifies("EVT-1", "MED-1"))
    func `members that an asset does not name are stored unchanged`() throws {
        let json =
            #"{"mood":"glad \u0041",\#(Self.asset),"own\u0049d":"x","exif":{ "iso" : 1e2 }}"#
        let stored = try AssetStored(json: Array(json.utf8))
        let properties = try #require(stored.properties)
        #expect(
            String(decoding: properties, as: UTF8.self)
                == #"{"mood":"glad \u0041","own\u0049d":"x","exif":{ "iso" : 1e2 }}"#)
        #expect(try AssetStored(json: stored.json()) == stored)
        #expect(try AssetStored(json: Array("{\(Self.asset)}".utf8)).properties == nil)
    }

    @Test(
        .verifies("MED-1"),
        arguments: ["[]", #"{"isFavorite":true}"#, #"{"x":1,"x":2}"#, "{", #"{"x":}"#])
    func `properties that are not an object or contain a member of an asset are refused`(
        properties: String
    ) throws {
        let stored = try AssetStored(json: Array("{\(Self.asset)}".utf8))
        let broken = AssetStored(stored.asset, properties: Array(properties.utf8))
        #expect { _ = try broken.json() } throws: { ($0 as? EventError)?.code == .invalidData }
    }
}
