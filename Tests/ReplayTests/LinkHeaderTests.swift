// The header by which a page refers to the next one, in all forms of RFC 8288.

import DaybookTestKit
import TestSupport
import Testing

@testable import Replay

@Suite struct LinkHeaderTests {
    @Test(
        .verifies("SEC-19"),
        arguments: [
            (#"</v1/events?after=a1>; rel="next""#, "/v1/events?after=a1"),
            (#"</a>; rel=next"#, "/a"),
            (#"</a>;rel=NEXT"#, "/a"),
            (#"</a>  ;  REL = "next""#, "/a"),
            // Several links, several headers that were joined, empty elements.
            (#"</p>; rel="prev", </n>; rel="next""#, "/n"),
            (#"</n>; rel="next", </m>; rel="next""#, "/n"),
            (#", ,</n>; rel="next","#, "/n"),
            // Commas, semicolons and brackets that are not separators.
            (#"</p,q;r>; rel="prev"; title="a, </x>; rel=\"next\"", </n>; rel="next""#, "/n"),
            (#"</a,b?c=;d>; rel="next""#, "/a,b?c=;d"),
            // Parameters in any order, several relations, flags, empty parameters.
            (#"</n>; title="x"; rel="next"; type="t""#, "/n"),
            (#"</n>; rel="prev next""#, "/n"),
            (#"</n>; flag; ; rel="next";"#, "/n"),
            (#"<>; rel="next""#, ""),
        ])
    func `the next page is found`(header: String, target: String) {
        #expect(LinkHeader.next(header) == target)
    }

    @Test(
        .verifies("SEC-19"),
        arguments: [
            "", "<", "</a>", "</a", #"/a; rel="next""#, #"</a>; rel="nextpage""#,
            #"</a>; rel="prev"; rel="next""#, #"</a>; rev="next""#, #"</a>; title="rel=next""#,
            // About another page.
            #"</a>; rel="next"; anchor="/b""#,
            // Broken.
            #"</a>; rel="next"#, #"</a> rel="next""#, #"</p>; title="x, </n>; rel=next"#,
        ])
    func `no next page is found where there is none`(header: String) {
        #expect(LinkHeader.next(header) == nil)
    }

    @Test(.verifies("SEC-19")) func `no header traps, and a target is always a part of the header`()
        throws
    {
        let pieces = [
            "<", ">", ";", ",", "=", "\"", "\\", " ", "\t", "rel", "next", "anchor", "/a", "ä", "",
        ]
        try Property.check(
            "link headers", runs: 2_000, covering: ["found", "not found"]
        ) { choices in
            var header = choices.array(0...20) { $0.element(of: pieces) }.joined()
            if choices.bool(oneIn: 3) { header += "</n>; rel=\"next\"" }
            let next = LinkHeader.next(header)
            choices.count(next == nil ? "not found" : "found")
            if let next { try #require(header.contains("<\(next)>")) }
        }
    }
}
