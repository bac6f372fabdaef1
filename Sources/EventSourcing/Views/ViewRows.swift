// The rows of a view as a list whose elements are created on each read.

/// The rows of a view. A row is created when it is read, so a page of a view with many rows takes the order of
/// their keys and the rows of the page.
public struct ViewRows: RandomAccessCollection, Sendable {
    public let count: Int
    /// True if the first field of each row is an identifier, and the rows are in the order of the identifiers'
    /// bytes.
    package let isSortedByFirstField: Bool
    private let row: @Sendable (Int) -> ViewRow

    /// Creates a list with one row for each element of another list, in its order.
    public init<Element: Sendable>(
        _ elements: [Element], row: @escaping @Sendable (Element) -> ViewRow
    ) {
        count = elements.count
        isSortedByFirstField = false
        self.row = { row(elements[$0]) }
    }

    /// Creates a list with one row for each identifier, which is the row's first field. The identifiers are
    /// different ones in any order. O(n log n).
    public init(ids: some Collection<EntityID>, row: @escaping @Sendable (EntityID) -> ViewRow) {
        let sorted = ids.sorted(byID: \.self)
        count = sorted.count
        isSortedByFirstField = true
        self.row = { row(sorted[$0]) }
    }

    /// Creates a list of rows.
    public init(_ rows: [ViewRow]) { self.init(rows) { $0 } }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// The row at an offset, created anew. O(fields).
    public subscript(position: Int) -> ViewRow { row(position) }
}

extension ViewRows: ExpressibleByArrayLiteral {
    public init(arrayLiteral rows: ViewRow...) { self.init(rows) }
}

extension ViewRows: Equatable {
    /// True if all rows are equal, in order. O(rows).
    public static func == (lhs: ViewRows, rhs: ViewRows) -> Bool {
        lhs.count == rhs.count && lhs.elementsEqual(rhs)
    }
}
