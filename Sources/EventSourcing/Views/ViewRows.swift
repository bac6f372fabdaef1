// The rows of a view as a list whose elements are created on each read.

/// The rows of a view. Each row is created when it is read, so the first page of a million rows costs no more
/// than that of a hundred.
public struct ViewRows: RandomAccessCollection, Sendable {
    public let count: Int
    private let row: @Sendable (Int) -> ViewRow

    /// Creates a list with one row for each element of another list, in its order.
    public init<Element: Sendable>(
        _ elements: [Element], row: @escaping @Sendable (Element) -> ViewRow
    ) {
        count = elements.count
        self.row = { row(elements[$0]) }
    }

    /// Creates a list of rows.
    public init(_ rows: [ViewRow]) { self.init(rows) { $0 } }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// The row at an offset.
    public subscript(position: Int) -> ViewRow { row(position) }
}

extension ViewRows: ExpressibleByArrayLiteral {
    public init(arrayLiteral rows: ViewRow...) { self.init(rows) }
}

extension ViewRows: Equatable {
    /// True if all rows are equal, in order.
    public static func == (lhs: ViewRows, rhs: ViewRows) -> Bool {
        lhs.count == rhs.count && lhs.elementsEqual(rhs)
    }
}
