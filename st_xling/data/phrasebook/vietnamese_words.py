"""Vietnamese lexicon. Nouns: classifier (may be empty) | noun. Adjectives: after a noun | as a predicate."""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: | giáo viên
    doctor: | bác sĩ
    farmer: người | nông dân
    cook: | đầu bếp
    nurse: | y tá
    driver: | tài xế
    painter: | họa sĩ
    tourist: | du khách
    man: người | đàn ông
    woman: người | phụ nữ
    friend: người | bạn
    neighbour: người | hàng xóm
    student: | học sinh
    child: đứa | trẻ
    boy: | cậu bé
    girl: | cô bé
    mother: | mẹ
    father: | bố
    grandmother: | bà
    grandfather: | ông
    uncle: | chú
    aunt: | dì
    dog: con | chó
    cat: con | mèo
    horse: con | ngựa
    rabbit: con | thỏ
    goat: con | dê
    bird: con | chim
    pig: con | lợn
    duck: con | vịt
    cow: con | bò
    monkey: con | khỉ
    elephant: con | voi
    bear: con | gấu
    book: cuốn | sách
    newspaper: tờ | báo
    letter: lá | thư
    bag: chiếc | túi
    umbrella: chiếc | ô
    hat: chiếc | mũ
    shirt: chiếc | áo sơ mi
    cup: chiếc | cốc
    table: cái | bàn
    chair: cái | ghế
    bicycle: chiếc | xe đạp
    car: chiếc | ô tô
    pencil: cây | bút chì
    phone: chiếc | điện thoại
    key: chiếc | chìa khóa
    painting: bức | tranh
    camera: chiếc | máy ảnh
    clock: chiếc | đồng hồ
    lamp: chiếc | đèn
    flower: bông | hoa
    box: chiếc | hộp
    window: cái | cửa sổ
    door: cánh | cửa
    house: ngôi | nhà
    apple: quả | táo
    pear: quả | lê
    tomato: quả | cà chua
    banana: quả | chuối
    orange: quả | cam
    carrot: củ | cà rốt
    egg: quả | trứng
    cake: chiếc | bánh ngọt
    sandwich: chiếc | bánh mì kẹp
    coffee: ly | cà phê
    tea: ly | trà
    juice: ly | nước ép
    school: ngôi | trường
    library: | thư viện
    museum: | bảo tàng
    theatre: | nhà hát
    market: khu | chợ
    factory: | nhà máy
    station: | nhà ga
    airport: | sân bay
    hospital: | bệnh viện
    restaurant: | nhà hàng
    hotel: | khách sạn
    park: | công viên
    garden: khu | vườn
    village: ngôi | làng
    beach: | bãi biển
    kitchen: | nhà bếp
""")

ADJECTIVES = table("""
    young: trẻ
    aged: già
    kind: tốt bụng
    clever: thông minh
    famous: nổi tiếng
    rich: giàu có
    lazy: lười biếng
    strong: khỏe mạnh
    polite: lịch sự
    tired: mệt mỏi
    nervous: căng thẳng
    happy: vui vẻ
    sad: buồn bã
    angry: tức giận
    big: to
    small: nhỏ
    white: màu trắng | có màu trắng
    black: màu đen | có màu đen
    brown: màu nâu | có màu nâu
    red: màu đỏ | có màu đỏ
    blue: màu xanh dương | có màu xanh dương
    green: màu xanh lá cây | có màu xanh lá cây
    yellow: màu vàng | có màu vàng
    new: mới
    old: cũ
    thick: dày
    expensive: đắt tiền
    cheap: rẻ tiền
    beautiful: đẹp
    clean: sạch sẽ
    dirty: bẩn
    heavy: nặng
    fresh: tươi
    sweet: ngọt
    ripe: chín
    delicious: ngon
    hot: nóng
    cold: lạnh
    modern: hiện đại
    quiet: yên tĩnh
""")

VERBS = words("""
    buy: mua
    sell: bán
    eat: ăn
    drink: uống
    read: đọc
    write: viết
    look_for: tìm
    find: tìm thấy
    lose: làm mất
    see: nhìn thấy
    wash: rửa
    carry: mang
    repair: sửa
    draw: vẽ
    open: mở
    close: đóng
    visit: thăm
    visit_place: tham quan
    clean: lau dọn
    invite: mời
    call: gọi điện cho
    help: giúp
    greet: chào
    watch: quan sát
    chase: đuổi
    feed_on: ăn
    give: đưa
    send: gửi
    bring: mang
    sell_to: bán
    go: đi
    walk: đi bộ
    drive: lái xe
    run: chạy
    come_back: trở về
    sleep: ngủ
    sing: hát
    dance: nhảy
    work: làm việc
    play: chơi
    study: học bài
    cook_meals: nấu ăn
    wait: chờ
    laugh: cười
    cry: khóc
    arrive: đến nơi
    say: nói
    think: nghĩ
    know: biết
    believe: tin
""")

TIMES = words("""
    yesterday: hôm qua
    last_week: tuần trước
    last_year: năm ngoái
    this_morning: sáng nay
    last_night: tối qua
    two_days_ago: hai ngày trước
    now: bây giờ
    at_the_moment: lúc này
    every_day: mỗi ngày
    every_morning: mỗi sáng
    every_evening: mỗi tối
    every_monday: mỗi thứ Hai
    every_week: mỗi tuần
    tomorrow: ngày mai
    next_week: tuần sau
    next_year: năm sau
    tonight: tối nay
    day_after_tomorrow: ngày kia
    today: hôm nay
""")

NUMBERS = ("", "một", "hai", "ba", "bốn", "năm", "sáu", "bảy", "tám", "chín")
PRONOUNS = {"i": "tôi", "you": "bạn", "he": "anh ấy", "she": "cô ấy", "we": "chúng tôi", "they": "họ"}
OWNERS = {"my": "tôi", "your": "bạn", "our": "chúng tôi"}
# Tense and mood before the verb: affirmed, denied.
PARTICLES = table("""
    past: đã | đã không
    progressive: đang
    habitual:
    present:
    future: sẽ | sẽ không
    want: muốn | không muốn
    can: có thể | không thể
    must: phải
""")
